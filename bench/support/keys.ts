/*
 * Who asks: addresses and sessions as texts, and the order in which they ask. Chance is seeded, so every run
 * and every contender sees the same traffic.
 *
 * Texts made beforehand favour the peers that keep keys in a Map: V8 keeps the hash of a text in the text,
 * and compares a text with itself at once. They lie far apart in memory, too, and then merely reading one
 * takes longer than a whole decision. A request of a server brings a new text each time: so do `newTexts`.
 */
import { seededRandom } from '../../src/traffic/random.js'

/** An address for each index below 2^27, in one flat piece, as Node hands it out. */
export function addressOf(index: number): string {
  return [10 + (index >>> 24), (index >>> 16) & 255, (index >>> 8) & 255, index & 255].join('.')
}

/** The text of each key, by its index. */
export interface Texts {
  readonly count: number
  at(this: void, index: number): string
}

export function addresses(count: number): Texts {
  return kept(Array.from({ length: count }, (_, index) => addressOf(index)))
}

/** The same addresses, each made anew whenever it is asked for, out of bytes, as a parser of requests does. */
export function newAddresses(count: number): Texts {
  const bytes = Buffer.alloc(count * addressLengthMax)
  const lengths = new Uint8Array(count)
  for (let index = 0; index < count; index++) {
    lengths[index] = bytes.write(addressOf(index), index * addressLengthMax, 'latin1')
  }
  const at = (index: number) => {
    const start = index * addressLengthMax
    return bytes.toString('latin1', start, start + (lengths[index] as number))
  }
  return { count, at }
}

const addressLengthMax = 16

function kept(texts: readonly string[]): Texts {
  return { count: texts.length, at: (index) => texts[index] as string }
}

const idAlphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const idLength = 32

/** Session ids of the length that express-session gives them. */
export function sessionIds(count: number): Texts {
  const random = seededRandom(2)
  const letter = () => idAlphabet.charAt(random() * idAlphabet.length)
  const id = () => Array.from({ length: idLength }, letter).join('')
  return kept(Array.from({ length: count }, id))
}

/** Key indices in the order in which they are asked for. */
export type Order = Uint32Array

export function oneKeyOrder(length: number): Order {
  return new Uint32Array(length)
}

export function uniformOrder(length: number, keyCount: number): Order {
  const random = seededRandom(1)
  return Uint32Array.from({ length }, () => random() * keyCount)
}

/** Zipf's law with exponent 1: the n-th most frequent key has a share of 1/n of the first one's. */
export function zipfOrder(length: number, keyCount: number): Order {
  const random = seededRandom(1)
  const sums = new Float64Array(keyCount)
  let sum = 0
  for (let rank = 0; rank < keyCount; rank++) sums[rank] = sum += 1 / (rank + 1)
  return Uint32Array.from({ length }, () => firstAbove(sums, random() * sum))
}

/** Each key once, in a shuffled order, for filling. */
export function everyKeyOrder(keyCount: number): Order {
  const random = seededRandom(3)
  const order = Uint32Array.from({ length: keyCount }, (_, index) => index)
  for (let index = keyCount - 1; index > 0; index--) {
    const other = Math.floor(random() * (index + 1))
    const moved = order[index] as number
    order[index] = order[other] as number
    order[other] = moved
  }
  return order
}

/** The first position whose value is above, in values that only rise. */
function firstAbove(values: Float64Array, wanted: number): number {
  let low = 0
  let high = values.length - 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((values[middle] as number) > wanted) high = middle
    else low = middle + 1
  }
  return low
}
