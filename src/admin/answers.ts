/*
 * How the admin routes answer: JSON, indented because it is read by people as much as by programs, and
 * problem documents (RFC 9457) where they refuse. By Node's own means: under Express 4 or none, a response
 * lacks what Express 5 adds.
 */
import type { ServerResponse } from 'node:http'

const titles = {
  400: 'Bad request',
  404: 'Not found',
  405: 'Method not allowed',
  409: 'Conflict',
  413: 'Content too large',
  415: 'Unsupported media type',
  500: 'Internal error',
  503: 'Service unavailable',
} as const

export type RefusalStatus = keyof typeof titles

/** Thrown by a handler that cannot do what it was asked; becomes the answer. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: RefusalStatus
  readonly headers: Readonly<Record<string, string>>

  /** @param detail what was received and what would be right. */
  constructor(
    status: RefusalStatus,
    detail: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(detail)
    this.status = status
    this.headers = headers
  }
}

export function answerJson(response: ServerResponse, value: unknown): void {
  answerText(response, 200, 'application/json', `${JSON.stringify(value, null, 2)}\n`)
}

/** @param title the usual one of the status unless given. */
export function answerProblem(
  response: ServerResponse,
  status: number,
  { title, detail }: { title?: string; detail?: string } = {},
): void {
  const document = { type: 'about:blank', title: title ?? titleOf(status), status, detail }
  const text = `${JSON.stringify(document)}\n`
  answerText(response, status, 'application/problem+json', text)
}

export function answerText(
  response: ServerResponse,
  status: number,
  type: string,
  text: string,
): void {
  response.statusCode = status
  response.setHeader('Content-Type', `${type}; charset=utf-8`)
  response.setHeader('Content-Length', Buffer.byteLength(text))
  response.end(text)
}

function titleOf(status: number): string {
  return titles[status as RefusalStatus] ?? 'Bad request'
}
