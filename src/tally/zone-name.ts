/*
 * Which names of time zones are taken: those of the IANA database that this Node.js knows, in any letter
 * case. Fixed offsets are not among them, nor are the abbreviations that ICU reads beside: to it BST is
 * Bangladesh, and whoever wrote it may have meant Britain.
 */
import { shown, TallygateError } from '../core/errors.js'
import { nearestName } from '../core/spelling.js'
import { ShiftingZone, steadyZone, type Zone } from './zone.js'

/** The names of three letters that are in the IANA database; each other one means several zones. */
const shortNames = 'CET EET EST GMT HST MET MST PRC ROC ROK UCT UTC WET'.split(' ')

/**
 * The zone of a name. Its own name is as Intl spells it, but an alias stays what was written: Intl would
 * make Asia/Calcutta of Asia/Kolkata.
 *
 * @throws TallygateError saying what was received, and the name that was probably meant.
 */
export function zoneNamed(received: unknown): Zone {
  if (received === 'UTC') return steadyZone(received)
  const name = typeof received === 'string' && !isAbbreviation(received) ? received : ''
  const canonical = canonicalName(name)
  if (canonical === null) throw unknownZone(received)
  const spelt = canonical.toLowerCase() === name.toLowerCase() ? canonical : name
  return canonical === 'UTC' ? steadyZone(spelt) : new ShiftingZone(spelt)
}

function isAbbreviation(name: string): boolean {
  return /^[a-z]{3}$/i.test(name) && !shortNames.includes(name.toUpperCase())
}

/** null where Intl does not know the name, or takes it for an offset, as later versions of Node.js do. */
function canonicalName(name: string): string | null {
  if (/^[-+]/.test(name)) return null
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone
  } catch {
    return null
  }
}

function unknownZone(received: unknown): TallygateError {
  return new TallygateError(
    'TALLYGATE_CONFIG_FIELD',
    `Cannot keep tallies: timeZone must be the IANA name of a time zone, such as Europe/Berlin: ` +
      `received ${shown(received)}${typeof received === 'string' ? advice(received) : ''}`,
  )
}

function advice(name: string): string {
  if (isAbbreviation(name)) return ', which may stand for several zones: name a city of yours'
  const [, sign, hours = '', minutes = '0'] =
    /^(?:utc|gmt)?([-+])(\d\d?):?(\d\d)?$/i.exec(name) ?? []
  if (sign !== undefined) return offsetAdvice(sign, Number(hours), Number(minutes))
  const known = Intl.supportedValuesOf('timeZone')
  const near = known.find((other) => cityOf(other) === cityOf(name)) ?? nearestName(name, known)
  return near === null ? '' : `, did you mean ${near}?`
}

/** What most people remember of a name: they write Asia/Tallinn, or just Tallinn. */
function cityOf(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1).toLowerCase()
}

/** The fixed offsets that have a name are called by how far they are behind, not ahead. */
function offsetAdvice(sign: string, hours: number, minutes: number): string {
  const isAhead = sign === '+'
  if (minutes !== 0 || hours === 0 || hours > (isAhead ? 14 : 12)) return ', an offset'
  return `, an offset: without daylight saving that is Etc/GMT${isAhead ? '-' : '+'}${hours}`
}
