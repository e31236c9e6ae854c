/*
 * What the middleware needs of Express: little, and the same in Express 4 and 5. Handlers are plain
 * functions over Node's own request and response, so nothing here imports Express.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** A request as Express and express-session dress it up; every addition may be missing. */
export interface HttpRequest extends IncomingMessage {
  /** The client address as Express's `trust proxy` has it. */
  ip?: string | undefined
  sessionID?: string | undefined
  session?: unknown
  baseUrl?: string | undefined
  originalUrl?: string | undefined
  route?: { path?: unknown } | undefined
  /** The Express app that has the request; `get` with one argument reads a setting. */
  app?: { get?(setting: string): unknown } | undefined
}

export type Next = (error?: unknown) => void

/** Mounts in Express 4 and 5 alike. */
export type Handler = (request: IncomingMessage, response: ServerResponse, next: Next) => void
