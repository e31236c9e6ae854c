/*
 * The nearest known name: near slips are found, far words are not forced onto a name.
 */
import { describe, expect, it } from 'vitest'
import { nearestName } from '../../src/core/spelling.js'

describe('nearestName', () => {
  const known = ['limit', 'window', 'maxKeys', 'mode']

  it.each([
    ['limt', 'limit'],
    ['Limit', 'limit'],
    ['limits', 'limit'],
    ['wndow', 'window'],
    ['max_keys', 'maxKeys'],
    ['moed', 'mode'],
  ])('of %s is %s', (name, near) => {
    expect(nearestName(name, known)).toBe(near)
  })

  it.each(['', 'x', 'completely-different', 'y'.repeat(100_000)])(
    'is none for a far word, case %#',
    (name) => {
      expect(nearestName(name, ['limit', 'window', 'maxKeys'])).toBeNull()
    },
  )

  it('takes the first of two that are equally near, and none of none', () => {
    expect(nearestName('ab', ['ax', 'ay'])).toBe('ax')
    expect(nearestName('ab', [])).toBeNull()
  })
})
