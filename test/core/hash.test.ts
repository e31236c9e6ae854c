/*
 * The seeded hash of keys: what it must tell apart, that nobody outside can foresee it, and that it spreads
 * keys evenly over what tables choose by.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hashedLengthMax, KeyHasher } from '../../src/core/hash.js'

const seed = Buffer.from(Array.from({ length: 544 }, (_, index) => (index * 167 + 13) % 256))

function wordsOf(hasher: KeyHasher, text: string, kind = 3): { low: number; high: number } {
  hasher.hash(kind, text)
  const { low, high } = hasher
  return { low, high }
}

const hashOf = (hasher: KeyHasher, text: string, kind = 3) => {
  const { low, high } = wordsOf(hasher, text, kind)
  return (high >>> 0) * 2 ** 32 + (low >>> 0)
}

describe('the hash of a key', () => {
  const hasher = new KeyHasher(seed)

  it('is the same for the same seed, whoever computes it and whatever came between', () => {
    const texts = [
      '',
      'a',
      '203.0.113.7',
      'x'.repeat(64),
      'x'.repeat(65),
      'é€𝒳',
      'a'.repeat(16_384),
    ]
    const first = texts.map((text) => hashOf(hasher, text))
    const other = new KeyHasher(Buffer.from(seed))
    expect(texts.toReversed().map((text) => hashOf(other, text))).toEqual(first.toReversed())
    expect(texts.map((text) => hashOf(hasher, text))).toEqual(first)
    expect(new Set(first).size).toBe(texts.length)
  })

  it('is the same for a seed that lies inside a larger buffer', () => {
    const padded = Buffer.concat([Buffer.alloc(7, 1), seed, Buffer.alloc(9, 2)])
    const inside = new KeyHasher(padded.subarray(7, 7 + seed.length))
    expect(hashOf(inside, '203.0.113.7')).toBe(hashOf(hasher, '203.0.113.7'))
  })

  it('does not change with the buffer that its seed came from', () => {
    const own = Buffer.from(seed)
    const made = new KeyHasher(own)
    const before = hashOf(made, 'a')
    own.fill(0)
    expect(hashOf(made, 'a')).toBe(before)
  })

  it('is another for each instance that draws its seed', () => {
    const hashes = Array.from({ length: 50 }, () => hashOf(new KeyHasher(), '203.0.113.7'))
    expect(new Set(hashes).size).toBe(50)
  })

  it('is two whole numbers of 32 bits, the low one never 0', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 100 }), fc.nat(3), (text, kind) => {
        for (const of of [hasher, new KeyHasher(Buffer.alloc(544))]) {
          const { low, high } = wordsOf(of, text, kind)
          expect([low, high]).toEqual([low | 0, high | 0])
          expect(low).not.toBe(0)
        }
      }),
    )
  })

  it('differs by kind, for short and for long texts', () => {
    for (const text of ['', 'a', '203.0.113.7', 'x'.repeat(64), 'x'.repeat(1_000)]) {
      const hashes = [0, 1, 2, 3].map((kind) => hashOf(hasher, text, kind))
      expect(new Set(hashes).size).toBe(4)
    }
  })

  it('differs by length, where what is longer is zero characters', () => {
    const hashes = Array.from({ length: 200 }, (_, length) => hashOf(hasher, '\0'.repeat(length)))
    expect(new Set(hashes).size).toBe(200)
    expect(hashOf(hasher, 'a')).not.toBe(hashOf(hasher, 'a\0'))
    expect(hashOf(hasher, 'a')).not.toBe(hashOf(hasher, '\0a'))
  })

  it('tells halves of surrogate pairs apart, from each other and from what replaces them', () => {
    for (const base of ['', 'x'.repeat(63), 'x'.repeat(64), 'x'.repeat(1_000)]) {
      const halves = ['\ud800', '\ud801', '\udfff', '\ufffd', '?']
      const hashes = halves.map((half) => hashOf(hasher, base + half))
      expect(new Set(hashes).size).toBe(halves.length)
    }
  })

  it('is of the whole text, where that is long', () => {
    for (const length of [hashedLengthMax, hashedLengthMax + 1, 16_384]) {
      const text = 'x'.repeat(length - 1)
      const hashes = [`${text}a`, `${text}b`, `a${text}`, `b${text}`, text, `${text}aa`]
      expect(new Set(hashes.map((one) => hashOf(hasher, one))).size).toBe(6)
    }
  })

  it('differs where texts do', () => {
    const text = fc.string({ unit: 'binary', maxLength: 80 })
    fc.assert(
      fc.property(text, text, (a, b) => {
        fc.pre(a !== b)
        expect(hashOf(hasher, a)).not.toBe(hashOf(hasher, b))
      }),
      { numRuns: 2_000 },
    )
  })
})

const families: [string, (n: number) => string][] = [
  ['numbers', String],
  ['addresses', (n) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`],
  ['networks', (n) => `2001:db8:${(n >> 16).toString(16)}:${(n & 65_535).toString(16)}::`],
  ['names that differ at the end', (n) => `session-of-somebody-${n.toString(36).padStart(6, '0')}`],
  ['single characters', (n) => String.fromCharCode(n % 65_536) + String.fromCharCode(n >> 16)],
]

describe('hashes of many keys', () => {
  it.each(families)('no two of 300,000 are equal: %s', (_, textOf) => {
    const hasher = new KeyHasher()
    const seen = new Set<string>()
    for (let n = 0; n < 300_000; n++) {
      const { low, high } = wordsOf(hasher, textOf(n))
      seen.add(`${high} ${low}`)
    }
    expect(seen.size).toBe(300_000)
  })

  const parts: [string, (words: { low: number; high: number }) => number][] = [
    ['first bucket', ({ low }) => low & 1_023],
    ['second bucket', ({ high }) => high & 1_023],
    ['high bits of the high word', ({ high }) => high >>> 22],
    ['high bits of the low word', ({ low }) => low >>> 22],
  ]

  it.each(families)('are spread as chance would have it: %s', (_, textOf) => {
    const hasher = new KeyHasher(seed)
    const words = Array.from({ length: 60_000 }, (__, n) => wordsOf(hasher, textOf(n)))
    for (const [part, partOf] of parts) {
      const counts = new Uint32Array(1_024)
      for (const word of words) counts[partOf(word)] = (counts[partOf(word)] ?? 0) + 1
      const expected = words.length / counts.length
      const chiSquare = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
      // 1,023 degrees of freedom: mean 1,023, standard deviation 45; six of them either way.
      expect({ part, isSpread: Math.abs(chiSquare - 1_023) < 271 }).toEqual({
        part,
        isSpread: true,
      })
    }
  })
})
