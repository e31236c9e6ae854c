/*
 * The time of a key's last counted attempt in 48 bits, for algorithms that count in windows: whole
 * milliseconds, kept as a word and a half so that a key takes 14 bytes and not 16. Which window it lies in
 * follows from it: windows begin at whole milliseconds, so what is cut off never leaves the window.
 *
 *   stamp = ⌊last⌋ + 2^47     a slot of zeros is a time before all others
 */
import type { KeyState } from '../algorithm.js'
import type { RuleTime } from '../rule-time.js'

const offsetMs = 2 ** 47
const wordSize = 2 ** 32

/** @param at index of the word that the stamp begins with. */
export function readStamp({ words, halves }: KeyState, slot: number, at: number): number {
  return (halves[slot] as number) * wordSize + (words[at] as number) - offsetMs
}

export function writeStamp(state: KeyState, slot: number, at: number, time: RuleTime): void {
  const stamp = Math.floor(time.nowMs) + offsetMs
  state.words[at] = stamp >>> 0
  state.halves[slot] = Math.floor(stamp / wordSize)
}

/** How many windows ago a key's last attempt was: 0, 1, or 2 for any more, or for a time still ahead. */
export function windowsSince(
  { words, halves }: KeyState,
  slot: number,
  at: number,
  time: RuleTime,
): 0 | 1 | 2 {
  // As in readStamp; a double handed from one function to another may be put on the heap.
  const lastMs = (halves[slot] as number) * wordSize + (words[at] as number) - offsetMs
  if (lastMs > time.nowMs) return 2
  if (lastMs >= time.startMs) return 0
  return lastMs >= time.startMs - time.windowMs ? 1 : 2
}
