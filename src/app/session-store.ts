/*
 * express-session's store over session rows. A session ends when its cookie does: reading it, or a request
 * that leaves it unchanged, does not move its end, unless sessions are `rolling`, where the cookie is sent
 * again with every answer.
 */
import { Store, type SessionData } from 'express-session'
import type { SessionRows } from '../sqlite/sessions.js'

type Done = (error?: unknown) => void

export interface SessionStoreOptions {
  readonly rows: SessionRows
  readonly wallMs: () => number
  /** For a session whose cookie names no end: it lives as long as the browser, here no longer than this. */
  readonly maxAgeMs: number
  /** Whether a request extends a session; set it as express-session's own option is set. */
  readonly rolling: boolean
}

export class SessionStore extends Store {
  readonly #options: SessionStoreOptions

  constructor(options: SessionStoreOptions) {
    super()
    this.#options = options
  }

  override get(id: string, done: (error: unknown, session?: SessionData | null) => void): void {
    this.#options.rows
      .get(id)
      .then((data) => done(null, data === null ? null : (JSON.parse(data) as SessionData)), done)
  }

  override set(id: string, session: SessionData, done?: Done): void {
    const written = this.#options.rows.set(id, JSON.stringify(session), this.#endOf(session))
    report(written, done)
  }

  override touch(id: string, session: SessionData, done?: Done): void {
    if (!this.#options.rolling) return done?.()
    const extended = this.#options.rows.extend(id, JSON.stringify(session), this.#endOf(session))
    report(extended, done)
  }

  override destroy(id: string, done?: Done): void {
    report(this.#options.rows.delete(id), done)
  }

  #endOf(session: SessionData): number {
    const { expires } = session.cookie
    const endMs = expires === undefined || expires === null ? NaN : new Date(expires).getTime()
    return Number.isFinite(endMs) ? endMs : this.#options.wallMs() + this.#options.maxAgeMs
  }
}

/** express-session may ask without waiting for the answer; a failure is then dropped, as it would be there. */
function report(work: Promise<void>, done: Done = () => undefined): void {
  work.then(() => done(), done)
}
