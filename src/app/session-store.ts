/*
 * express-session's store over session rows. A session ends when its cookie does: reading it, or a request
 * that leaves it unchanged, does not move its end, unless sessions are `rolling`, where the cookie is sent
 * again with every answer. So the store remembers of each session that was read how it was, and writes only
 * what differs from that, also where `resave` would have it write every time.
 *
 * A session that was read is updated and never made again: one that was ended while a request still ran
 * stays ended, whatever that request does with it.
 */
import type { Request } from 'express'
import { Store, type Session, type SessionData } from 'express-session'
import type { SessionBuffer } from '../sqlite/session-buffer.js'

type Done = (error?: unknown) => void

export interface SessionStoreOptions {
  readonly rows: SessionBuffer
  readonly wallMs: () => number
  /** For a session whose cookie names no end: it lives as long as the browser, here no longer than this. */
  readonly maxAgeMs: number
  /** Whether a request extends a session; set it as express-session's own option is set. */
  readonly rolling: boolean
}

/** A session as it was read from its row. */
interface Known {
  readonly data: string
  /** Whether it has been written since, and so has its cookie been sent again, with another end. */
  isChanged: boolean
}

export class SessionStore extends Store {
  readonly #options: SessionStoreOptions
  readonly #known = new WeakMap<object, Known>()

  constructor(options: SessionStoreOptions) {
    super()
    this.#options = options
  }

  override get(id: string, done: (error: unknown, session?: SessionData | null) => void): void {
    this.#options.rows.get(id).then((data) => done(null, this.#read(data)), done)
  }

  /** express-session makes its own object of what `get` gave it. */
  override createSession(request: Request, data: SessionData): Session & SessionData {
    const session = super.createSession(request, data)
    const known = this.#known.get(data)
    if (known !== undefined) this.#known.set(session, known)
    return session
  }

  override set(id: string, session: SessionData, done?: Done): void {
    const { rows } = this.#options
    const known = this.#known.get(session)
    const data = JSON.stringify(session)
    if (known === undefined) return report(rows.set(id, data, this.#endOf(session)), done)
    if (!known.isChanged && contentsOf(session) === contentsOf(JSON.parse(known.data))) {
      return this.touch(id, session, done)
    }
    known.isChanged = true
    report(rows.update(id, data, this.#endOf(session)), done)
  }

  /** Nobody waits for an extension to be written. */
  override touch(id: string, session: SessionData, done?: Done): void {
    if (this.#options.rolling || this.#known.get(session)?.isChanged === true) {
      this.#options.rows.extend(id, JSON.stringify(session), this.#endOf(session))
    }
    done?.()
  }

  override destroy(id: string, done?: Done): void {
    report(this.#options.rows.delete(id), done)
  }

  /** A row that holds no session, damaged for instance, is none: its client begins another. */
  #read(data: string | null): SessionData | null {
    const session = data === null ? null : parsed(data)
    if (data === null || session === null) return null
    this.#known.set(session, { data, isChanged: false })
    return session
  }

  #endOf(session: SessionData): number {
    const { expires } = session.cookie
    const endMs = expires === undefined || expires === null ? NaN : new Date(expires).getTime()
    return Number.isFinite(endMs) ? endMs : this.#options.wallMs() + this.#options.maxAgeMs
  }
}

/** What express-session would trip over, and answer every request of that client with an error, is null. */
function parsed(data: string): SessionData | null {
  try {
    const session = JSON.parse(data) as { cookie?: unknown } | null
    const isSession = typeof session?.cookie === 'object' && session.cookie !== null
    return isSession ? (session as SessionData) : null
  } catch {
    return null
  }
}

/** A session without its cookie, which moves with every request. */
function contentsOf(session: object): string {
  return JSON.stringify({ ...session, cookie: undefined })
}

/** express-session may ask without waiting for the answer; a failure is then dropped, as it would be there. */
function report(work: Promise<void>, done: Done = () => undefined): void {
  work.then(() => done(), done)
}
