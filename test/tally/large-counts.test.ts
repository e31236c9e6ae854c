/*
 * Counts that a double does not hold: exact in sums, and as JSON has them.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { countOf, exactAt, sumOf } from '../../src/tally/large-counts.js'

const max = Number.MAX_SAFE_INTEGER

describe('counts', () => {
  it('are numbers up to 2^53 − 1 and digits beyond', () => {
    expect(countOf(0n)).toBe(0)
    expect(countOf(BigInt(max))).toBe(9_007_199_254_740_991)
    expect(countOf(BigInt(max) + 1n)).toBe('9007199254740992')
    expect(countOf(BigInt(max) + 2n)).toBe('9007199254740993')
  })

  it('add up exactly, where the sum is too large for a double and where a part is', () => {
    const stored = fc.bigInt({ min: 0n, max: 2n ** 62n })
    const waiting = fc.array(fc.nat({ max: 2 ** 30 }), { maxLength: 3 })
    fc.assert(
      fc.property(stored, waiting, (count, more) => {
        const counts = Float64Array.of(Number(count), 1)
        const large = count > max ? new Map([[0, count]]) : undefined
        const sum = sumOf({ counts, large }, ...more.map((each) => Float64Array.of(each, 0)))
        expect(exactAt(sum, 0)).toBe(more.reduce((all, each) => all + BigInt(each), count))
        expect(exactAt(sum, 1)).toBe(1n)
      }),
    )
  })

  it('become large when a sum of small ones is', () => {
    const sum = sumOf({ counts: Float64Array.of(max) }, Float64Array.of(1), Float64Array.of(1))
    expect(exactAt(sum, 0)).toBe(BigInt(max) + 2n)
  })

  it('need nothing beside the row while they are small', () => {
    expect(sumOf({ counts: Float64Array.of(max - 1) }, Float64Array.of(1))).toEqual({
      counts: Float64Array.of(max),
    })
  })
})
