/*
 * Notices that the system's clock was set: the wall clock then moves against the monotonic one. Rules do not
 * mind, they read the monotonic clock; tallies and dashboards do, because a minute comes twice or never.
 * Whoever wants to know looks about once a second, and each step is counted once, by its direction.
 */
import type { Clock } from './clock.js'

export const stepDirections = ['forward', 'backward'] as const

/** A clock that is kept in step by slewing it moves by half a millisecond a second. */
const stepMsMin = 250
/** Readings further apart than this say nothing: the process was not running in between. */
const readingMsMax = 20
const readingCountMax = 5

export class ClockSteps {
  readonly #clock: Clock
  /** One for each of `stepDirections`. */
  readonly #counts = [0, 0]
  #offsetMs: number | null = null
  #monotonicMs = -Infinity

  constructor(clock: Clock) {
    this.#clock = clock
    this.look()
  }

  /** Compares the clocks with how they stood at the last look. */
  look(): void {
    const monotonicMs = this.#clock.monotonicMs()
    // A monotonic clock that runs backwards is no such thing, but virtual machines have had them.
    if (monotonicMs < this.#monotonicMs - stepMsMin) this.#count(-1)
    this.#monotonicMs = monotonicMs
    const offsetMs = this.#readOffset()
    if (offsetMs === null) return
    const stepMs = offsetMs - (this.#offsetMs ?? offsetMs)
    if (Math.abs(stepMs) >= stepMsMin) this.#count(stepMs)
    // Slewing adds up over days: compared is always with the last look.
    this.#offsetMs = offsetMs
  }

  /** @param direction index into `stepDirections`. */
  count(direction: number): number {
    return this.#counts[direction] ?? 0
  }

  #count(stepMs: number): void {
    const direction = stepMs > 0 ? 0 : 1
    this.#counts[direction] = (this.#counts[direction] as number) + 1
  }

  /** How far the wall clock is ahead, or null where the two could not be read at one moment. */
  #readOffset(): number | null {
    for (let turn = 0; turn < readingCountMax; turn++) {
      const beforeMs = this.#clock.monotonicMs()
      const wallMs = this.#clock.wallMs()
      const afterMs = this.#clock.monotonicMs()
      if (Math.abs(afterMs - beforeMs) <= readingMsMax) return wallMs - beforeMs
    }
    return null
  }
}
