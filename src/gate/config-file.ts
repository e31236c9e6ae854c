/*
 * Reads tallygate.yml: YAML 1.2, where `on` and `off` are words. What is in it is checked field by field;
 * rules are checked where they are compiled.
 */
import { readFileSync } from 'node:fs'
import { parseDocument, type Document } from 'yaml'
import { shown, TallygateError } from '../core/errors.js'
import type { RuleOptions } from '../core/rule.js'
import { nearestName } from '../core/spelling.js'
import type { ExemptOptions } from '../express/exemption.js'
import type { Weekday } from '../tally/calendar.js'

export interface Config {
  rules: RuleOptions[]
  exempt?: ExemptOptions | undefined
  timeZone?: string | undefined
  weekStartsOn?: Weekday | undefined
}

const fields = ['rules', 'exempt', 'timeZone', 'weekStartsOn']

/**
 * @throws TallygateError naming the file, the place in it, and what would be right.
 */
export function readConfig(path: string): Config {
  const document = parseDocument(readText(path), { version: '1.2', prettyErrors: true })
  const [fault] = document.errors
  if (fault !== undefined) {
    const firstLine = fault.message.split('\n')[0]?.replace(/:$/, '')
    throw new TallygateError('TALLYGATE_CONFIG_FILE', `Cannot read ${path} as YAML: ${firstLine}`)
  }
  // A directive would change the readings that the checks rely on: `010`, `yes`, `1:30`.
  const { version } = document.directives?.yaml ?? {}
  if (version !== undefined && version !== '1.2') {
    throw new TallygateError(
      'TALLYGATE_CONFIG_FILE',
      `Cannot read ${path}: it must be YAML 1.2: received the directive %YAML ${version}`,
    )
  }
  return checkConfig(plainValue(document, path), path)
}

/** Aliases are resolved only here: one may be unknown, or lead to more than memory holds. */
function plainValue(document: Document, path: string): unknown {
  try {
    return document.toJS()
  } catch (error) {
    throw new TallygateError(
      'TALLYGATE_CONFIG_FILE',
      `Cannot read ${path} as YAML: ${(error as Error).message}`,
      { cause: error },
    )
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new TallygateError(
      'TALLYGATE_CONFIG_FILE',
      `Cannot read the configuration ${path}: ${(error as Error).message}; ` +
        'TALLYGATE_CONFIG or the option config must name a readable file',
      { cause: error },
    )
  }
}

function checkConfig(value: unknown, path: string): Config {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TallygateError(
      'TALLYGATE_CONFIG_FILE',
      `Cannot use ${path}: it must hold a mapping with a list of rules: received ${shown(value)}`,
    )
  }
  for (const field of Object.keys(value)) {
    if (!fields.includes(field)) refuseField(path, field)
  }
  return value as Config
}

function refuseField(path: string, field: string): never {
  const near = nearestName(field, fields)
  const advice = near === null ? `known fields are ${fields.join(', ')}` : `did you mean ${near}?`
  throw new TallygateError(
    'TALLYGATE_CONFIG_FIELD',
    `Cannot use ${path}: unknown field ${shown(field)}: ${advice}`,
  )
}
