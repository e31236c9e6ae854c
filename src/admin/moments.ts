/*
 * Moments as people write them in an address: an ISO time that says its offset, a date, which stands for the
 * first instant of that day in the calendar's zone, or milliseconds since the epoch. A time without an
 * offset would be one of many, and ten digits would be seconds: both are refused.
 */
import { shown } from '../core/errors.js'
import type { Calendar } from '../tally/calendar.js'
import { Refusal } from './answers.js'

const dayMs = 86_400_000

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/i
const isoDate = /^\d{4}-\d\d-\d\d$/
const epochMs = /^\d{11,15}$/

/** @throws Refusal naming the parameter, what was received and what would be right. */
export function readMoment(name: string, text: string, calendar: Calendar): number {
  // In an address a plus sign that is not escaped stands for a space.
  const spelt = text.replace(/ (?=\d\d:\d\d$)/, '+')
  const timeMs = momentOf(spelt, calendar)
  if (!Number.isNaN(timeMs)) return timeMs
  throw new Refusal(
    400,
    `${name} must be an ISO time with its offset, such as 2026-11-30T22:00:00Z, a date such as ` +
      `2026-11-30, or milliseconds since the epoch: received ${shown(text)}`,
  )
}

function momentOf(text: string, calendar: Calendar): number {
  if (epochMs.test(text)) return Number(text)
  if (isoTime.test(text)) return Date.parse(text)
  return isoDate.test(text) ? startOfDate(text, calendar) : Number.NaN
}

/** Of a date that a zone has left out, the first instant after it. */
function startOfDate(date: string, calendar: Calendar): number {
  const noonMs = Date.parse(`${date}T12:00:00Z`)
  // Not a date at all, such as 30 February, which Date.parse takes for one of March.
  if (Number.isNaN(noonMs) || new Date(noonMs).toISOString().slice(0, date.length) !== date) {
    return Number.NaN
  }
  const days = calendar.spansIn('day', noonMs - dayMs, noonMs + 2 * dayMs)
  for (const { startMs } of days) {
    if (calendar.labelOf('day', startMs) >= date) return startMs
  }
  return Number.NaN
}
