/*
 * Clients that never stop asking, over connections that they keep, while the app goes and comes. What each
 * request came to is noted: whether it was answered, by what, and when it was sent.
 */
import { Agent, request } from 'node:http'
import { performance } from 'node:perf_hooks'
import { setTimeout as passing } from 'node:timers/promises'

export interface Asked {
  readonly sentMs: number
  /** null: no answer came. */
  readonly status: number | null
}

const clientCount = 4
/** Between two requests of a client. */
const pauseMs = 4

export class Load {
  readonly asked: Asked[] = []
  readonly #agent = new Agent({ keepAlive: true, maxSockets: clientCount })
  readonly #clients: Promise<unknown>
  #url: string
  #isOver = false

  constructor(url: string) {
    this.#url = url
    this.#clients = Promise.all(Array.from({ length: clientCount }, () => this.#askOn()))
  }

  /** Where the app is from now on. */
  moveTo(url: string): void {
    this.#url = url
  }

  /** Resolves once the last request has come to something. */
  async end(): Promise<void> {
    this.#isOver = true
    await this.#clients
    this.#agent.destroy()
  }

  /** How many got that answer. */
  answered(...statuses: number[]): number {
    return this.asked.filter(({ status }) => status !== null && statuses.includes(status)).length
  }

  async #askOn(): Promise<void> {
    for (let turn = 0; !this.#isOver; turn++) {
      const sentMs = performance.now()
      const status = await this.#ask(turn % 5 === 0)
      this.asked.push({ sentMs, status })
      await passing(pauseMs)
    }
  }

  /** A session that begins is a row, so that something is written all the time. */
  #ask(isSession: boolean): Promise<number | null> {
    const path = isSession ? '/api/session' : '/api/ping'
    return new Promise((resolve) => {
      const asking = request(this.#url + path, {
        agent: this.#agent,
        method: isSession ? 'POST' : 'GET',
      })
      asking.on('response', (response) => {
        const { statusCode = null } = response
        response.resume()
        response.on('end', () => resolve(statusCode)).on('error', () => resolve(null))
      })
      asking.on('error', () => resolve(null))
      asking.end()
    })
  }
}
