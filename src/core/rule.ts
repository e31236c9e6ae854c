/*
 * A rule as somebody writes it, each field one row with its check and its words, and the rule as the
 * request path reads it: frozen, plain, validated once. What this version does not know stops the start
 * by name, so that nothing is silently unlimited.
 */
import { z } from 'zod'
import type { Algorithm } from './algorithm.js'
import { algorithms, laterAlgorithms } from './algorithms/index.js'
import { modes, type Mode } from './decision.js'
import { parseDuration, windowMsMax, windowMsMin } from './duration.js'
import { shown, TallygateError } from './errors.js'
import { nearestName } from './spelling.js'

export type KeyKind = 'global' | 'ip' | 'session'

/** A rule as it stands in tallygate.yml or in code; see docs/configuration.md. */
export interface RuleOptions {
  name: string
  key?: KeyKind | undefined
  /** Cost units a window. */
  limit: number
  /** `500ms`, `30s`, `1m`, `1h`, `1d`, `1w`, or whole milliseconds. */
  window: string | number
  algorithm?: string | undefined
  strict?: boolean | undefined
  function?: string | undefined
  mode?: Mode | undefined
  near?: number | undefined
  absent?: 'address' | 'skip' | undefined
  maxKeys?: number | undefined
  ipv6Prefix?: number | undefined
  expose?: boolean | undefined
}

/** A rule made ready: every option resolved, nothing left to look up. */
export interface CompiledRule {
  /** Position in the configuration; tables and counters have one slot for each. */
  readonly index: number
  readonly name: string
  readonly key: KeyKind
  readonly limit: number
  readonly windowMs: number
  readonly algorithm: Algorithm
  readonly strict: boolean
  /** null: every request. */
  readonly function: string | null
  readonly mode: Mode
  readonly near: number
  readonly absent: 'address' | 'skip'
  readonly maxKeys: number
  readonly ipv6Prefix: number
  readonly expose: boolean
}

interface FieldRow {
  /** Accepts exactly the right values; its own messages are not shown. */
  readonly schema: z.ZodType
  /** Completes "FIELD must be …". */
  readonly must: string
  readonly doc: string
  /** How docs show the default; undefined where the field is required. */
  readonly fallback?: string
}

const limitMax = 2 ** 32 - 1
const keysMax = 2 ** 24 - 1
const namePattern = /^[a-z][a-z0-9-]{0,63}$/

const nameMust = '1 to 64 of a-z, 0-9 and -, beginning with a letter'

export const ruleFields: Readonly<Record<keyof RuleOptions, FieldRow>> = {
  name: {
    schema: z.string().regex(namePattern),
    must: nameMust,
    doc: 'What the rule is called in headers, metrics and statistics; unique.',
  },
  key: {
    schema: z.enum(['global', 'ip', 'session']),
    must: 'global, ip or session',
    doc: 'Whom the rule counts: everybody together, each client address, or each session.',
    fallback: '`global`',
  },
  limit: {
    schema: z.int().min(0).max(limitMax),
    must: `a whole number from 0 to ${limitMax}`,
    doc: 'Cost units that a key may use in a window; 0 declines everything.',
  },
  window: {
    schema: z.custom((value) => {
      const windowMs = parseDuration(value)
      return windowMs !== null && windowMs >= windowMsMin && windowMs <= windowMsMax
    }),
    must: 'a span such as 500ms, 30s, 1m, 1h, 1d or 1w, or whole milliseconds; 1ms to 366d',
    doc: 'The span that the limit speaks of.',
  },
  algorithm: {
    schema: z.custom((value) => typeof value === 'string' && algorithms.has(value)),
    must: [...algorithms.keys()].join(', '),
    doc: 'How usage is measured; see docs/algorithms.md.',
    fallback: '`sliding-window`',
  },
  strict: {
    schema: z.boolean(),
    must: 'true or false',
    doc: 'Declined attempts count too, so that a client that keeps hammering stays out.',
    fallback: '`false`',
  },
  function: {
    schema: z.string().regex(namePattern),
    must: nameMust,
    doc: 'Only for what stands behind `gate.limit` of that name, not for every request.',
    fallback: 'every request',
  },
  mode: {
    schema: z.enum(modes),
    must: 'enforce, shadow or disabled',
    doc: '`shadow` decides and counts but never declines; `disabled` switches the rule off.',
    fallback: '`enforce`',
  },
  near: {
    schema: z.number().min(0).max(1),
    must: 'a number from 0 to 1',
    doc: 'Share of the limit above which a verdict is `near`.',
    fallback: '0.8',
  },
  absent: {
    schema: z.enum(['address', 'skip']),
    must: 'address or skip',
    doc: 'What becomes of a request without such a key: counted by its address, or not by this rule.',
    fallback: '`address` for `key: session`, else `skip`',
  },
  maxKeys: {
    schema: z.int().min(1).max(keysMax),
    must: `a whole number from 1 to ${keysMax}`,
    doc: 'Most keys tracked at once; beyond it the least used make room.',
    fallback: '1,000,000',
  },
  ipv6Prefix: {
    schema: z.int().min(1).max(128),
    must: 'a whole number from 1 to 128',
    doc: 'Bits of an IPv6 address that make one client.',
    fallback: '64',
  },
  expose: {
    schema: z.boolean(),
    must: 'true or false',
    doc: 'Named in response headers even when it did not decline.',
    fallback: '`true`, but `false` for `key: global`',
  },
}

/** Fields of the rule language that this version refuses by name. */
export const laterFields = ['burst', 'minInterval', 'maxAge', 'match', 'candidates', 'persist']

/**
 * Makes a list of rules ready.
 *
 * @throws TallygateError naming the rule, the field, what was received and what would be right.
 */
export function compileRules(list: unknown): CompiledRule[] {
  if (!Array.isArray(list) || list.length === 0) {
    throw new TallygateError(
      'TALLYGATE_RULE_VALUE',
      `Cannot create a limiter: rules must be a list of one or more rules: received ${shown(list)}`,
    )
  }
  const rules = list.map((options: unknown, index) => compileRule(options, index))
  for (const rule of rules) {
    const first = rules.find((other) => other.name === rule.name)
    if (first === rule || first === undefined) continue
    throw new TallygateError(
      'TALLYGATE_RULE_NAME',
      `Cannot create rule '${rule.name}': names must be unique: ` +
        `received it for rules ${first.index + 1} and ${rule.index + 1}`,
    )
  }
  return rules
}

/** Makes one rule ready; `index` is its position in the configuration. */
export function compileRule(options: unknown, index: number): CompiledRule {
  const checked = checkRule(options, index)
  const key = checked.key ?? 'global'
  return Object.freeze<CompiledRule>({
    index,
    name: checked.name,
    key,
    limit: checked.limit,
    windowMs: parseDuration(checked.window) as number,
    algorithm: algorithms.get(checked.algorithm ?? 'sliding-window') as Algorithm,
    strict: checked.strict ?? false,
    function: checked.function ?? null,
    mode: checked.mode ?? 'enforce',
    near: checked.near ?? 0.8,
    absent: checked.absent ?? (key === 'session' ? 'address' : 'skip'),
    maxKeys: checked.maxKeys ?? 1_000_000,
    ipv6Prefix: checked.ipv6Prefix ?? 64,
    expose: checked.expose ?? key !== 'global',
  })
}

function checkRule(options: unknown, index: number): RuleOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new TallygateError(
      'TALLYGATE_RULE_VALUE',
      `Cannot create rule ${index + 1}: a rule must be a mapping of fields: received ${shown(options)}`,
    )
  }
  const given = options as Record<string, unknown>
  const title = typeof given['name'] === 'string' ? shownName(given['name']) : String(index + 1)
  for (const field of Object.keys(given)) {
    if (given[field] !== undefined && !Object.hasOwn(ruleFields, field)) refuseField(title, field)
  }
  for (const [field, row] of Object.entries(ruleFields)) checkField(title, field, row, given)
  return given as unknown as RuleOptions
}

function checkField(title: string, field: string, row: FieldRow, given: Record<string, unknown>) {
  const value = given[field]
  if (value === undefined && row.fallback !== undefined) return
  if (row.schema.safeParse(value).success) return
  const received = value === undefined ? 'nothing' : shown(value)
  throw new TallygateError(
    'TALLYGATE_RULE_VALUE',
    `Cannot create rule ${title}: ${field} must be ${row.must}: received ${received}` +
      hint(field, value),
  )
}

/** What a reader of the message could not guess: older YAML, fields still to come. */
function hint(field: string, value: unknown): string {
  if (typeof value === 'boolean' && field !== 'strict' && field !== 'expose') {
    return ' (YAML 1.1 reads on, yes, off and no as true and false: put the word in quotes)'
  }
  const isLater =
    (field === 'algorithm' && laterAlgorithms.includes(value as string)) ||
    (field === 'key' &&
      (typeof value === 'function' ||
        Array.isArray(value) ||
        (typeof value === 'string' && value.startsWith('header:')))) ||
    (field === 'limit' && typeof value === 'function')
  return isLater ? ', which this version does not support yet' : ''
}

function refuseField(title: string, field: string): never {
  const known = Object.keys(ruleFields)
  const near = nearestName(field, known)
  const advice = laterFields.includes(field)
    ? 'this version does not support it yet'
    : near === null
      ? `known fields are ${known.join(', ')}`
      : `did you mean ${near}?`
  throw new TallygateError(
    'TALLYGATE_RULE_FIELD',
    `Cannot create rule ${title}: unknown field ${shownName(field)}: ${advice}`,
  )
}

function shownName(name: string): string {
  return `'${shown(name).slice(1, -1)}'`
}
