/*
 * Which names of zones a calendar takes, how it spells them, and what it says of others.
 */
import { describe, expect, it } from 'vitest'
import { createCalendar } from '../../src/tally/calendar.js'
import { messageOf } from '../support/units/limits.js'

describe('the name of a zone', () => {
  it.each([
    ['UTC', 'UTC'],
    ['utc', 'UTC'],
    ['Europe/Berlin', 'Europe/Berlin'],
    ['europe/berlin', 'Europe/Berlin'],
    ['AMERICA/PORT-AU-PRINCE', 'America/Port-au-Prince'],
    ['Etc/UTC', 'Etc/UTC'],
    ['Etc/GMT-2', 'Etc/GMT-2'],
    ['US/Pacific', 'US/Pacific'],
    ['EST', 'EST'],
    ['Europe/Kyiv', 'Europe/Kyiv'],
    ['Europe/Kiev', 'Europe/Kiev'],
    ['Asia/Kolkata', 'Asia/Kolkata'],
    ['Asia/Calcutta', 'Asia/Calcutta'],
  ])('%s is taken, and shown as %s', (received, shown) => {
    expect(createCalendar(received).timeZone).toBe(shown)
  })

  it('is each that Intl knows', () => {
    for (const name of Intl.supportedValuesOf('timeZone')) {
      expect(createCalendar(name).timeZone).toBe(name)
    }
  })

  it.each([
    ['Europe/Berlim', 'received "Europe/Berlim", did you mean Europe/Berlin?'],
    ['Asia/Tallinn', 'did you mean Europe/Tallinn?'],
    ['berlin', 'did you mean Europe/Berlin?'],
    ['America/NewYork', 'did you mean America/New_York?'],
    ['Mars/Olympus', 'received "Mars/Olympus" (TALLYGATE_CONFIG_FIELD)'],
    ['', 'received "" ('],
    [' UTC', 'received " UTC"'],
    ['Europe/Berlin\0', 'received "Europe/Berlin\\u0000"'],
    ['+02:00', 'received "+02:00", an offset: without daylight saving that is Etc/GMT-2'],
    ['-0330', 'received "-0330", an offset ('],
    ['UTC+2', 'an offset: without daylight saving that is Etc/GMT-2'],
    ['GMT-5', 'an offset: without daylight saving that is Etc/GMT+5'],
    ['+15:00', 'received "+15:00", an offset ('],
    ['BST', 'received "BST", which may stand for several zones: name a city of yours'],
    ['ist', 'which may stand for several zones'],
    [null, 'received null ('],
    [2, 'received 2 ('],
    [['Europe/Berlin'], 'received ["Europe/Berlin"] ('],
  ])('%j is refused: %s', (zone, says) => {
    const message = messageOf(() => createCalendar(zone as string))
    expect(message).toContain(
      'Cannot keep tallies: timeZone must be the IANA name of a time zone, such as Europe/Berlin: received ',
    )
    expect(message).toContain(says)
    expect(message).toContain('(TALLYGATE_CONFIG_FIELD)')
  })

  it('that is long is refused at once, and shown shortened', () => {
    const message = messageOf(() => createCalendar('Europe/'.repeat(100_000)))
    expect(message.length).toBeLessThan(300)
  })

  it('is UTC where none is given', () => {
    expect(createCalendar().timeZone).toBe('UTC')
    expect(createCalendar(undefined).timeZone).toBe('UTC')
  })
})
