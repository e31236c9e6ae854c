/*
 * What the middleware needs of Express: little, and the same in Express 4 and 5. Handlers are plain
 * functions over Node's own request and response, so nothing here imports Express.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Decision } from '../core/decision.js'

/** A request as Express and express-session dress it up; every addition may be missing. */
export interface HttpRequest extends IncomingMessage {
  /** The client address as Express's `trust proxy` has it. */
  ip?: string | undefined
  sessionID?: string | undefined
  session?: unknown
  baseUrl?: string | undefined
  originalUrl?: string | undefined
  route?: { path?: unknown } | undefined
  /** Express puts the response here. */
  res?: ServerResponse | undefined
  /** The Express app that has the request; an app that is mounted inherits its parent's settings. */
  app?: { settings?: Readonly<Record<string, unknown>> | undefined } | undefined
}

/** A response as Express dresses it up. */
export interface HttpResponse extends ServerResponse {
  json(body: unknown): unknown
  send(body: unknown): unknown
}

export type Next = (error?: unknown) => void

/** Mounts in Express 4 and 5 alike. */
export type Handler = (request: IncomingMessage, response: ServerResponse, next: Next) => void

/**
 * Answers a declined request in place of the problem document. A method's type, because TypeScript lets its
 * parameters be the more special types of Express's own.
 */
export type DeclineHandler = {
  answer(request: HttpRequest, response: HttpResponse, decision: Decision): unknown
}['answer']

/**
 * What a request costs, a whole number from 0; of 0 it is charged to no rule. A method's type, so that its
 * parameter may be Express's own request.
 */
export type CostFunction = {
  cost(request: HttpRequest): number
}['cost']
