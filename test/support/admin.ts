/*
 * A gate whose admin routes are mounted, asked by somebody who bears the token; every answer in JSON is held
 * to the schema of its route.
 */
import type { Express } from 'express'
import { expect } from 'vitest'
import { answers, type AnswerName } from '../../src/admin/schema.js'
import type { GateParts } from '../../src/gate/gate.js'
import { guarded, type Answer, type Guarded } from './server.js'

export const adminToken = 'c0ffee00c0ffee11c0ffee22c0ffee33'

export const bearing = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

export interface Administered extends Guarded {
  /** Sends a request below /admin, with the token. */
  readonly admin: (path: string, init?: RequestInit) => Promise<Answer>
  /** What a route answers, as an object. */
  readonly read: <T = unknown>(path: string, init?: RequestInit) => Promise<T>
  /** What it says when it refuses: status and detail. */
  readonly refusal: (path: string, init?: RequestInit) => Promise<[number, string]>
}

export async function administered(
  options: Parameters<typeof guarded>[0],
  build: (app: Express, gate: GateParts) => void = answerAll,
): Promise<Administered> {
  const hosted = await guarded({ adminToken, ...options }, (app, gate) => {
    app.get('/metrics', gate.metrics)
    app.use('/admin', gate.admin)
    build(app, gate)
  })
  const admin = (path: string, init: RequestInit = {}) =>
    hosted.ask(`/admin${path}`, {
      ...init,
      headers: { ...bearing(adminToken).headers, ...(init.headers as object) },
    })
  const refusal = async (path: string, init?: RequestInit): Promise<[number, string]> => {
    const { status, text } = await admin(path, init)
    const { detail } = answers.problem.parse(JSON.parse(text))
    return [status, detail ?? '']
  }
  const read = async <T>(path: string, init?: RequestInit): Promise<T> => {
    const { status, text } = await admin(path, init)
    expect({ path, status, text: status === 200 ? '' : text }).toEqual({
      path,
      status: 200,
      text: '',
    })
    const value: unknown = JSON.parse(text)
    expectAnswer(nameOf(path), value)
    return value as T
  }
  return { ...hosted, admin, read, refusal }
}

/** Fails where the answer has another shape than its schema says. */
export function expectAnswer(name: AnswerName, value: unknown): void {
  const { error } = answers[name].safeParse(value)
  expect(error?.issues ?? []).toEqual([])
}

interface Sent extends RequestInit {
  headers: Record<string, string>
}

/** A request with a body of JSON. */
export const sending = (method: string, body: unknown): Sent => ({
  method,
  body: typeof body === 'string' ? body : JSON.stringify(body),
  headers: { 'content-type': 'application/json' },
})

function nameOf(path: string): AnswerName {
  if (path.startsWith('/stats/history')) return 'history'
  if (path.startsWith('/stats')) return 'statistics'
  if (path.startsWith('/keys')) return 'keys'
  if (path.startsWith('/explain')) return 'explanation'
  return path.startsWith('/rules') ? 'changedRule' : 'audit'
}

function answerAll(app: Express, gate: GateParts): void {
  app.use(gate.middleware)
  app.use((_request, response) => void response.send('ok'))
}
