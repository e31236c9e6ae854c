/*
 * Chance that can be repeated: mulberry32, a generator of 32 bits of state. Good enough to choose who asks
 * for what, and tiny; nothing secret is ever made from it. The same seed gives the same numbers everywhere,
 * because it uses whole-number arithmetic only.
 */

/** The next number, from 0 up to but not including 1. */
export type Random = () => number

export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
