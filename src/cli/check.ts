/*
 * `tallygate check FILE`: validates a configuration and says in words what it does.
 */
import type { Command } from 'commander'
import { formatDuration } from '../core/duration.js'
import { compileRules, type CompiledRule } from '../core/rule.js'
import { compileExempt } from '../express/exemption.js'
import { readConfig } from '../gate/config-file.js'
import { createCalendar } from '../tally/calendar.js'

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
        `Tallies follow ${calendar.timeZone}, weeks beginning on ${calendar.weekStartsOn}.`,
      ]
      process.stdout.write(`${lines.join('\n')}\n`)
    })
}

/** A bare number is milliseconds, and somebody may have meant seconds. */
function isSuspicious({ windowMs }: CompiledRule): boolean {
  return windowMs < 1_000
}

function shortWindow({ name, windowMs }: CompiledRule): string {
  return `  Note: the window of ${name} is ${windowMs} milliseconds; for seconds write ${windowMs}s.`
}

const whom = {
  global: 'everybody together',
  ip: 'each client address',
  session: 'each session',
} as const

function inWords(rule: CompiledRule): string {
  if (rule.mode === 'disabled') return 'switched off.'
  const what = rule.function === null ? 'requests' : `calls of ${rule.function}`
  const parts = [
    `${whom[rule.key]} may make ${rule.limit} ${what} in ${formatDuration(rule.windowMs)}`,
    `by ${rule.algorithm.name}`,
  ]
  if (rule.capacity !== rule.limit) parts.push(`up to ${rule.capacity} at once after a rest`)
  if (rule.minIntervalMs > 0) parts.push(`at least ${formatDuration(rule.minIntervalMs)} apart`)
  if (rule.maxAgeMs < Infinity) {
    parts.push(`forgotten after ${formatDuration(rule.maxAgeMs)} of rest`)
  }
  for (const { label } of rule.candidates) parts.push(`compared with ${label}`)
  if (rule.strict) parts.push('declined attempts count too')
  if (rule.key === 'session') {
    parts.push(
      rule.absent === 'skip'
        ? 'requests without a session are not counted here'
        : 'a request without a session counts by its address',
    )
  }
  if (rule.mode === 'shadow') parts.push('in shadow: it decides and counts, but never declines')
  return `${parts.join('; ')}.`
}
