/*
 * `tallygate check FILE`: validates a configuration and says in words what it does.
 */
import type { Command } from 'commander'
import { systemClock } from '../core/clock.js'
import { formatDuration } from '../core/duration.js'
import { compileRules, type CompiledRule } from '../core/rule.js'
import { compileExempt } from '../express/exemption.js'
import { readConfig } from '../gate/config-file.js'
import { createCalendar, type Calendar } from '../tally/calendar.js'

export function addCheck(program: Command): void {
  program
    .command('check')
    .description('Validate a configuration file and say in words what it does.')
    .argument('<file>', 'the configuration, such as tallygate.yml')
    .action((file: string) => {
      const config = readConfig(file)
      const rules = compileRules(config.rules)
      const exempt = compileExempt(config.exempt)
      const calendar = createCalendar(config.timeZone, config.weekStartsOn)
      const lines = [
        `${file} is right: ${rules.length} ${rules.length === 1 ? 'rule' : 'rules'}.`,
        ...rules.map((rule) => `  ${rule.name}: ${inWords(rule)}`),
        ...(exempt.isEmpty ? [] : [`  exempt: ${config.exempt?.ips?.join(', ')}.`]),
        ...rules.filter(isSuspicious).map(shortWindow),
        calendarInWords(calendar, systemClock.wallMs()),
      ]
      process.stdout.write(`${lines.join('\n')}\n`)
    })
}

/** What time it is there tells a wrong zone, and a fixed offset of the wrong sign, at a glance. */
function calendarInWords(calendar: Calendar, nowMs: number): string {
  const { timeZone, weekStartsOn } = calendar
  const [minute, week] = [calendar.labelOf('minute', nowMs), calendar.labelOf('week', nowMs)]
  return (
    `Tallies follow ${timeZone}, weeks beginning on ${weekStartsOn}: ` +
    `there it is ${minute}, in the week ${week}.`
  )
}

/** A bare number is milliseconds, and somebody may have meant seconds. */
function isSuspicious({ windowMs }: CompiledRule): boolean {
  return windowMs < 1_000
}

function shortWindow({ name, windowMs }: CompiledRule): string {
  return `  Note: the window of ${name} is ${windowMs} milliseconds; for seconds write ${windowMs}s.`
}

/** Whom a rule counts. */
function whom({ keyParts }: CompiledRule): string {
  if (keyParts.length === 0) return 'everybody together'
  const names = keyParts.map((part) => {
    if (part.kind === 'ip') return 'client address'
    return part.kind === 'header' ? `value of the header ${part.name}` : part.kind
  })
  return `each ${names.join(' with each ')}`
}

/** Which requests a rule is for; empty where it is for all. */
function where({ match }: CompiledRule): string {
  const methods = match?.methods?.join(', ') ?? ''
  const paths = match?.paths?.join(', ') ?? ''
  return (methods === '' ? '' : ` by ${methods}`) + (paths === '' ? '' : ` to ${paths}`)
}

function inWords(rule: CompiledRule): string {
  if (rule.mode === 'disabled') return 'switched off.'
  const what = rule.function === null ? 'requests' : `calls of ${rule.function}`
  const parts = [
    `${whom(rule)} may make ${rule.limit} ${what}${where(rule)} in ${formatDuration(rule.windowMs)}`,
    `by ${rule.algorithm.name}`,
  ]
  if (rule.capacity !== rule.limit) parts.push(`up to ${rule.capacity} at once after a rest`)
  if (rule.minIntervalMs > 0) parts.push(`at least ${formatDuration(rule.minIntervalMs)} apart`)
  if (rule.maxAgeMs < Infinity) {
    parts.push(`forgotten after ${formatDuration(rule.maxAgeMs)} of rest`)
  }
  for (const { label } of rule.candidates) parts.push(`compared with ${label}`)
  if (rule.strict) parts.push('declined attempts count too')
  if (rule.key !== 'global' && rule.key !== 'ip') parts.push(absence(rule))
  if (rule.persist) parts.push('kept over restarts where there is a database')
  if (rule.mode === 'shadow') parts.push('in shadow: it decides and counts, but never declines')
  return `${parts.join('; ')}.`
}

function absence({ keyParts, absent }: CompiledRule): string {
  const [part] = keyParts
  const names = { ip: 'an address', session: 'a session', header: 'that header', function: 'a key' }
  const missing = keyParts.length > 1 ? 'all of these' : names[part?.kind ?? 'function']
  return absent === 'skip'
    ? `requests without ${missing} are not counted here`
    : `a request without ${missing} counts by its address`
}
