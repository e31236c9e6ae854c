/*
 * Copies in memory: how many there may be, how large they may be together, and which goes first.
 */
import { describe, expect, it } from 'vitest'
import { BoundedCopies } from '../../src/sqlite/bounded-copies.js'

const copiesOf = (count: number, characters: number) =>
  new BoundedCopies<string>({ count, characters }, (copy) => copy.length)

const idsOf = (copies: BoundedCopies<string>) => [...copies].map(([id]) => id)

describe('bounded copies', () => {
  it('are no more than so many; the one that was used least recently goes', () => {
    const copies = copiesOf(3, 1_000)
    for (const id of ['a', 'b', 'c']) copies.set(id, id)
    expect(copies.get('a')).toBe('a')
    copies.set('b', 'B')
    copies.set('d', 'd')
    expect(idsOf(copies)).toEqual(['a', 'b', 'd'])
    expect([copies.get('c'), copies.get('b')]).toEqual([undefined, 'B'])
  })

  it('are no larger together than so many characters, their ids included', () => {
    const copies = copiesOf(100, 12)
    copies.set('a', '12345')
    copies.set('b', '12345')
    expect(idsOf(copies)).toEqual(['a', 'b'])
    copies.set('b', '123456')
    expect(idsOf(copies)).toEqual(['b'])
    copies.set('c', '')
    copies.set('d', '1')
    expect(idsOf(copies)).toEqual(['b', 'c', 'd'])
    copies.set('e', '1234567890')
    expect(idsOf(copies)).toEqual(['e'])
  })

  it('do not hold one that is larger than all may be, nor what it took the place of', () => {
    const copies = copiesOf(100, 10)
    copies.set('a', '1')
    copies.set('a', '1234567890')
    expect(idsOf(copies)).toEqual([])
    copies.set('b', '123456789')
    expect(copies.get('b')).toBe('123456789')
  })

  it('make room when they go, however that comes about', () => {
    const copies = copiesOf(100, 10)
    for (let turn = 0; turn < 5; turn++) {
      copies.set('a', '12345678')
      copies.delete('a')
      copies.delete('a')
      copies.set('b', '12345678')
      copies.clear()
    }
    copies.set('c', '1234')
    copies.set('d', '1234')
    expect(idsOf(copies)).toEqual(['c', 'd'])
  })

  it('may be nothing: that a session has ended is worth remembering', () => {
    const copies = new BoundedCopies<string | null>({ count: 2, characters: 100 }, () => 0)
    copies.set('a', null)
    expect([copies.get('a'), copies.get('b')]).toEqual([null, undefined])
    for (const id of ['a', '__proto__', 'constructor']) copies.set(id, null)
    expect([...copies]).toEqual([
      ['__proto__', null],
      ['constructor', null],
    ])
  })
})
