/*
 * Spans of time: what is read, what is refused, and that what is written is read again as the same span.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatDuration, parseDuration, windowMsMax, windowMsMin } from '../../src/core/duration.js'

describe('parseDuration', () => {
  it.each([
    ['1ms', 1],
    ['500ms', 500],
    ['30s', 30_000],
    ['1m', 60_000],
    ['1h', 3_600_000],
    ['1d', 86_400_000],
    ['1w', 604_800_000],
    ['366d', windowMsMax],
    [60_000, 60_000],
    [0, 0],
  ])('reads %j as %i ms', (text, spanMs) => {
    expect(parseDuration(text)).toBe(spanMs)
  })

  it.each([
    '',
    ' ',
    'm',
    '1',
    '1 m',
    ' 1m',
    '1m ',
    '1m\n',
    '1M',
    '1min',
    '1y',
    '1mo',
    '-1m',
    '+1m',
    '1.5m',
    '1e3ms',
    '0x10s',
    '10abc',
    '1m30s',
    '١m',
    '9999999999999999ms',
    '999999999999999w',
    NaN,
    Infinity,
    -Infinity,
    -1,
    1.5,
    2 ** 53,
    null,
    undefined,
    true,
    {},
    [],
    ['1m'],
    10n,
  ])('refuses %s', (value) => {
    expect(parseDuration(value)).toBeNull()
  })

  it('knows the shortest and the longest window', () => {
    expect([windowMsMin, windowMsMax]).toEqual([1, 31_622_400_000])
  })
})

describe('formatDuration', () => {
  it.each([
    [0, '0ms'],
    [1, '1ms'],
    [1_500, '1500ms'],
    [90_000, '90s'],
    [60_000, '1m'],
    [3_600_000, '1h'],
    [86_400_000, '1d'],
    [1_209_600_000, '2w'],
    [691_200_000, '8d'],
  ])('writes %i ms as %s', (spanMs, text) => {
    expect(formatDuration(spanMs)).toBe(text)
  })

  it('writes what parseDuration reads as the same span', () => {
    const unit = fc.constantFrom(1, 1_000, 60_000, 3_600_000, 86_400_000, 604_800_000)
    fc.assert(
      fc.property(fc.nat(100_000), unit, (count, unitMs) => {
        expect(parseDuration(formatDuration(count * unitMs))).toBe(count * unitMs)
      }),
    )
  })
})
