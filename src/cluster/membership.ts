/*
 * A gate's side: it tells the primary what it has counted, once a second and when it is asked, so that a
 * worker that is killed leaves its counters as of a second before; and it asks for what all come to.
 *
 * Messages do not pile up: while one report is on its way, no other is made for the second's sake.
 */
import { randomUUID } from 'node:crypto'
import type { Channel } from './channel.js'
import { patienceMs } from './gate-group.js'
import type { Lasting, Merged, Report } from './report.js'

/** Neither function may reject. */
export interface MembershipParts {
  readonly channel: Channel
  /** The same for this gate in every worker, and for no other. */
  readonly identity: string
  lasting(this: void): Promise<Lasting>
  report(this: void): Promise<Report>
}

/** A round that is under way, one of our own, and the way there and back. */
const answerWithinMs = 3 * patienceMs
/** How long the end waits for the last report to be on its way. */
const closeWithinMs = 500

export class Membership {
  readonly #parts: MembershipParts
  readonly #gate = randomUUID()
  readonly #stop: () => void
  readonly #asking = new Map<number, (merged: Merged | null) => void>()
  #questionCount = 0
  #isTicking = false
  #tellingCount = 0
  #isClosed = false

  constructor(parts: MembershipParts) {
    const { channel, identity } = parts
    this.#parts = parts
    this.#stop = channel.listen((message) => {
      if (message.gate !== this.#gate) return
      if (message.type === 'tell') void this.#tell()
      else this.#asking.get(message.question)?.(message.merged)
    })
    void channel.send({ type: 'open', gate: this.#gate, identity })
  }

  /** What all workers come to; null where the primary does not answer. */
  ask(): Promise<Merged | null> {
    if (this.#isClosed) return Promise.resolve(null)
    const question = ++this.#questionCount
    return new Promise((resolve) => {
      const settle = (merged: Merged | null) => {
        clearTimeout(timer)
        this.#asking.delete(question)
        resolve(merged)
      }
      const timer = setTimeout(() => settle(null), answerWithinMs)
      this.#asking.set(question, settle)
      void this.#parts.channel.send({ type: 'ask', gate: this.#gate, question })
    })
  }

  /** Reports what is to last; to be called about once a second. A report that was asked for says it too. */
  async tick(): Promise<void> {
    if (this.#isTicking || this.#isClosed || this.#tellingCount > 0) return
    this.#isTicking = true
    const lasting = await this.#parts.lasting()
    // Closed or asked meanwhile: then something newer is said.
    if (!this.#isClosed && this.#tellingCount === 0) {
      await this.#parts.channel.send({ type: 'report', gate: this.#gate, lasting, passing: null })
    }
    this.#isTicking = false
  }

  /** Reports for the last time. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    const lasting = await this.#parts.lasting()
    this.#isClosed = true
    for (const settle of this.#asking.values()) settle(null)
    this.#stop()
    const sent = this.#parts.channel.send({ type: 'close', gate: this.#gate, lasting })
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, closeWithinMs)))
    await Promise.race([sent, late])
    clearTimeout(timer)
  }

  async #tell(): Promise<void> {
    this.#tellingCount++
    const { lasting, passing } = await this.#parts.report()
    if (!this.#isClosed) {
      void this.#parts.channel.send({ type: 'report', gate: this.#gate, lasting, passing })
    }
    this.#tellingCount--
  }
}
