/*
 * The ids under which keys are shown: there and back, and what is none.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keyIdOf, wordsOfKeyId } from '../../src/core/key-id.js'
import { KeyMaker } from '../../src/core/key.js'

describe('the id of a key', () => {
  it('leads back to the words of its hash', () => {
    const words = fc.record({ low: fc.integer().filter((low) => low !== 0), high: fc.integer() })
    fc.assert(
      fc.property(words, (key) => {
        expect(wordsOfKeyId(keyIdOf(key))).toEqual(key)
      }),
    )
  })

  it('says nothing about whom it stands for, and is another in every process', () => {
    const ids = [1, 2].map(() => keyIdOf(new KeyMaker().address('203.0.113.7', 64)))
    expect(ids[0]).toMatch(/^[0-9a-f]{16}$/)
    expect(ids[0]).not.toBe(ids[1])
  })

  it.each([
    '',
    'x',
    '0123456789abcde',
    '0123456789abcdef0',
    '0123456789ABCDEF',
    'g123456789abcdef',
  ])('%j is none', (text) => {
    expect(wordsOfKeyId(text)).toBeNull()
  })

  it('with a low word of 0 is none: tables mark free rows by it', () => {
    expect(wordsOfKeyId('1234567800000000')).toBeNull()
    expect(wordsOfKeyId('0000000012345678')).toEqual({ high: 0, low: 0x12345678 })
  })
})
