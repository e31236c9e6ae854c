/*
 * How a key is called where people see it: 16 hexadecimal digits of its seeded hash. Opaque, the same in one
 * process until it ends, and another in every other: nobody can tell from it whom it stands for.
 */
import type { Key } from './key.js'

/** The two words of a key's hash, as signed integers: all that a table in this process knows of it. */
export type KeyWords = Pick<Key, 'low' | 'high'>

export function keyIdOf({ low, high }: KeyWords): string {
  return digitsOf(high) + digitsOf(low)
}

/** null where the text is no id; a low word of 0 is none, tables take it for a free row. */
export function wordsOfKeyId(id: string): KeyWords | null {
  if (!/^[0-9a-f]{16}$/.test(id)) return null
  const words = { high: wordOf(id.slice(0, 8)), low: wordOf(id.slice(8)) }
  return words.low === 0 ? null : words
}

function digitsOf(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0')
}

function wordOf(digits: string): number {
  return Number.parseInt(digits, 16) | 0
}
