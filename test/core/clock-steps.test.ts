/*
 * Steps of the clock: each is counted once, by its direction; what is no step is not counted.
 */
import { describe, expect, it } from 'vitest'
import type { Clock } from '../../src/core/clock.js'
import { ClockSteps } from '../../src/core/clock-steps.js'

const startMs = 1_760_000_000_000

/** Two clocks that are moved apart by hand. */
class TwoClocks implements Clock {
  monotonic = startMs
  wall = startMs
  /** Added to the monotonic clock by each reading of the wall clock: the process was not running. */
  pauseMs = 0

  monotonicMs(): number {
    return this.monotonic
  }

  wallMs(): number {
    const { wall } = this
    this.pass(this.pauseMs)
    return wall
  }

  pass(ms: number): void {
    this.monotonic += ms
    this.wall += ms
  }
}

function watched(): { clock: TwoClocks; look: () => [forward: number, backward: number] } {
  const clock = new TwoClocks()
  const steps = new ClockSteps(clock)
  const look = (): [number, number] => {
    steps.look()
    return [steps.count(0), steps.count(1)]
  }
  return { clock, look }
}

describe('clock steps', () => {
  it('are none while both clocks run, however long nobody looks', () => {
    const { clock, look } = watched()
    for (const ms of [0, 1, 1_000, 86_400_000]) {
      clock.pass(ms)
      expect(look()).toEqual([0, 0])
    }
  })

  it('are counted once each, by direction', () => {
    const { clock, look } = watched()
    clock.wall += 3_600_000
    expect(look()).toEqual([1, 0])
    clock.pass(1_000)
    expect(look()).toEqual([1, 0])
    clock.wall -= 11_000
    expect(look()).toEqual([1, 1])
    clock.wall -= 250
    expect(look()).toEqual([1, 2])
  })

  it('are not what slewing adds up to', () => {
    const { clock, look } = watched()
    for (let second = 0; second < 10_000; second++) {
      clock.pass(1_000)
      clock.wall += 0.5
      expect(look()).toEqual([0, 0])
    }
  })

  it('are not what a pause between two readings looks like', () => {
    const { clock, look } = watched()
    clock.pauseMs = 500
    expect(look()).toEqual([0, 0])
    clock.pauseMs = 0
    expect(look()).toEqual([0, 0])
    clock.wall += 1_000
    expect(look()).toEqual([1, 0])
  })

  it('count a monotonic clock that runs backwards, both clocks with it', () => {
    const { clock, look } = watched()
    clock.pass(-5_000)
    expect(look()).toEqual([0, 1])
    expect(look()).toEqual([0, 1])
  })
})
