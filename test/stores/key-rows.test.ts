/*
 * Rows under hashes: found wherever they were moved to, over growth and shrinking by single buckets; nothing
 * is found that is not there; memory follows the number of keys, both ways.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { algorithms } from '../../src/core/algorithms/index.js'
import type { Algorithm } from '../../src/core/algorithm.js'
import { KeyHasher } from '../../src/core/hash.js'
import { keyKinds, KeyMaker, type Key } from '../../src/core/key.js'
import { KeyRows } from '../../src/stores/memory/key-rows.js'

const seed = Buffer.from(Array.from({ length: 544 }, (_, index) => (index * 167 + 13) % 256))
const maker = new KeyMaker(new KeyHasher(seed))
const keyOf = (n: number): Key => maker.of(keyKinds.given, String(n))
const algorithm = algorithms.get('sliding-window') as Algorithm
const rolling = algorithms.get('rolling-window') as Algorithm

function add(rows: KeyRows, { low, high }: Key, mark: number): number {
  rows.insert(low, high)
  const before = rows.slab.words[rows.at] as number
  rows.slab.words[rows.at] = mark
  return before
}

/** What was written for the key, or null where it is not there. */
function markOf(rows: KeyRows, { low, high }: Key): number | null {
  return rows.find(low, high) ? (rows.slab.words[rows.at] as number) : null
}

function drop(rows: KeyRows, { low, high }: Key): void {
  if (rows.find(low, high)) rows.remove()
}

const filledRatio = (rows: KeyRows) => rows.used / (rows.bucketCount * rows.rowsPerBucket)

describe('key rows', () => {
  it.each([algorithm, rolling])('$name: are a Map, whatever is added, removed and shrunk', (of) => {
    const step = fc.record({
      act: fc.constantFrom('add', 'add', 'add', 'remove', 'shrink'),
      key: fc.nat(400),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 1_500, size: 'max' }), (steps) => {
        const rows = new KeyRows(of, null)
        const model = new Map<number, number>()
        const before: number[] = []
        for (const [mark, { act, key }] of steps.entries()) {
          if (act === 'remove') {
            drop(rows, keyOf(key))
            model.delete(key)
          } else if (act === 'shrink') {
            if (rows.isSparse) rows.shrink()
          } else if (!model.has(key)) {
            before.push(add(rows, keyOf(key), mark + 1))
            model.set(key, mark + 1)
          }
        }
        expect(before.every((word) => word === 0)).toBe(true)
        expect(rows.used).toBe(model.size)
        for (let key = 0; key <= 400; key++) {
          expect(markOf(rows, keyOf(key))).toBe(model.get(key) ?? null)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('keep every key over growth to 200,000 and back to none', () => {
    const rows = new KeyRows(algorithm, null)
    const keys = Array.from({ length: 200_000 }, (_, n) => keyOf(n))
    const filled: number[] = []
    for (const [n, key] of keys.entries()) {
      add(rows, key, n + 1)
      if (n > 1_000 && n % 100 === 0) filled.push(filledRatio(rows))
    }
    // Never far from full: a key takes at most 1/0.8 of a fifth of 128 bytes.
    expect(Math.min(...filled)).toBeGreaterThan(0.8)
    expect(keys.filter((key, n) => markOf(rows, key) !== n + 1)).toEqual([])
    expect(markOf(rows, keyOf(200_000))).toBeNull()
    for (const key of keys.slice(1_000)) {
      drop(rows, key)
      while (rows.isSparse && rows.shrink());
    }
    expect(filledRatio(rows)).toBeGreaterThan(0.35)
    expect(keys.filter((key, n) => markOf(rows, key) !== (n < 1_000 ? n + 1 : null))).toEqual([])
    for (const key of keys.slice(0, 1_000)) drop(rows, key)
    while (rows.isSparse && rows.shrink());
    expect([rows.used, rows.bucketCount]).toEqual([0, 4])
  })

  it('tell keys apart that share one word of their hash', () => {
    const rows = new KeyRows(algorithm, null)
    const keys = [keyOf(1), keyOf(2)] as [Key, Key]
    const crossed = { ...keys[0], high: keys[1].high }
    for (const [n, key] of [...keys, crossed].entries()) add(rows, key, n + 1)
    expect([...keys, crossed].map((key) => markOf(rows, key))).toEqual([1, 2, 3])
    expect(markOf(rows, { ...keys[1], high: keys[0].high })).toBeNull()
  })

  it('clear the state of what they remove', () => {
    const rows = new KeyRows(algorithm, null)
    const key = keyOf(1)
    rows.insert(key.low, key.high)
    rows.slab.words.fill(7, rows.at, rows.at + algorithm.wordCount)
    drop(rows, key)
    expect(rows.slab.words.every((word) => word === 0)).toBe(true)
    expect([markOf(rows, key), rows.used]).toEqual([null, 0])
  })
})
