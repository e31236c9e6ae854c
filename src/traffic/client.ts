/*
 * One simulated client: its address, its session, and what it tends to ask for. What it asks next depends on
 * two drawn numbers and on whether it has a session. It always takes two draws, whatever was answered
 * before, so that the chance of a run follows from its seed alone.
 */

export interface Asked {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Relative to the address of the app. */
  readonly path: string
}

type Kind = 'home' | 'ping' | 'parse' | 'unknown' | 'leave'

/** Of a hundred requests, how many of each kind. */
const habits = {
  /** Looks around with a session, and ends it now and then. */
  reader: { keepsSession: true, home: 42, ping: 40, parse: 6, unknown: 7, leave: 5 },
  /** Stays for ever in one session, so that the limit of a session can be passed. */
  regular: { keepsSession: true, home: 20, ping: 74, parse: 4, unknown: 2, leave: 0 },
  /** A script that asks for the same thing. */
  poller: { keepsSession: false, home: 3, ping: 95, parse: 0, unknown: 2, leave: 0 },
  /** A script that parses addresses and guesses paths. */
  collector: { keepsSession: false, home: 5, ping: 35, parse: 42, unknown: 18, leave: 0 },
} as const

export type Habit = keyof typeof habits

const kinds: readonly Kind[] = ['home', 'ping', 'parse', 'unknown', 'leave']
const unknownPaths = ['favicon.ico', 'robots.txt', 'wp-login.php', 'api/pong', 'old/page']

export interface ClientOptions {
  readonly address: string
  readonly habit: Habit
  /** Share of all requests. */
  readonly weight: number
  readonly isLight: boolean
}

export class Client {
  readonly address: string
  readonly habit: Habit
  readonly weight: number
  readonly isLight: boolean
  sentCount = 0
  #cookie: string | null = null
  #isBeginning = false

  constructor({ address, habit, weight, isLight }: ClientOptions) {
    this.address = address
    this.habit = habit
    this.weight = weight
    this.isLight = isLight
  }

  /** @param kindDraw, detailDraw from 0 up to but not including 1. */
  ask(kindDraw: number, detailDraw: number): Asked {
    const { keepsSession } = habits[this.habit]
    // Not at every turn: a client that was declined would otherwise ask for nothing else.
    if (keepsSession && this.#cookie === null && !this.#isBeginning && detailDraw < 0.5) {
      this.#isBeginning = true
      return { method: 'POST', path: 'api/session' }
    }
    const kind = this.#kindOf(kindDraw)
    if (kind === 'leave' && this.#cookie !== null) return { method: 'DELETE', path: 'api/session' }
    return { method: 'GET', path: pathOf(kind, detailDraw) }
  }

  /** What a burst repeats: one request, over and over, as a broken script does. */
  askInBurst(kindDraw: number, detailDraw: number): Asked {
    return { method: 'GET', path: pathOf(kindDraw < 0.3 ? 'parse' : 'ping', detailDraw) }
  }

  headers(): Record<string, string> {
    const headers: Record<string, string> = { 'X-Forwarded-For': this.address }
    if (this.#cookie !== null) headers['Cookie'] = this.#cookie
    return headers
  }

  /** Keeps the cookie of a session that began, and drops that of one that ended. */
  learn(asked: Asked, status: number | null, setCookies: readonly string[]): void {
    if (asked.method === 'POST') {
      this.#isBeginning = false
      if (status === 201) this.#cookie = setCookies[0]?.split(';', 1)[0] ?? null
    }
    if (asked.method === 'DELETE' && status === 204) this.#cookie = null
  }

  #kindOf(draw: number): Kind {
    const habit = habits[this.habit]
    let left = draw * 100
    return kinds.find((kind) => (left -= habit[kind]) < 0) ?? 'ping'
  }
}

function pathOf(kind: Kind, detailDraw: number): string {
  if (kind === 'home') return ''
  if (kind === 'parse') {
    // Of a name that leads nowhere: no stranger's server is to feel a load that is meant for this app.
    const page = `https://example.invalid/${Math.floor(detailDraw * 1_000)}`
    return `api/parse?url=${encodeURIComponent(page)}`
  }
  if (kind === 'unknown') return unknownPaths[Math.floor(detailDraw * unknownPaths.length)] ?? ''
  return 'api/ping'
}
