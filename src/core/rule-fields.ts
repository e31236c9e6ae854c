/*
 * The fields of a rule, one row each: what is right, in a check and in words, what it does, and its default.
 * Messages, the table in docs/configuration.md and later the JSON schema come from these rows.
 */
import { z } from 'zod'
import { algorithms } from './algorithms/index.js'
import { modes } from './decision.js'
import { parseDuration, windowMsMax, windowMsMin } from './duration.js'
import { keyFault } from './key-check.js'
import { matchFault } from './match-check.js'
import { isWholeTo, limitMax } from './plans.js'
import { isPlainFunction } from './rule-functions.js'
import type { RuleOptions } from './rule-options.js'

export interface FieldRow {
  /** Accepts exactly the right values; its own messages are not shown. */
  readonly schema: z.ZodType
  /** Completes "FIELD must be …". */
  readonly must: string
  readonly doc: string
  /** How docs show the default; undefined where the field is required. */
  readonly fallback?: string
  /** The one algorithm that has the field, where it is not for all. */
  readonly only?: string
}

const keysMax = 2 ** 27
const entriesMax = 2 ** 27
const candidateCountMax = 8
const namePattern = /^[a-z][a-z0-9-]{0,63}$/

const nameMust = '1 to 64 of a-z, 0-9 and -, beginning with a letter'

export const ruleFields: Readonly<Record<keyof RuleOptions, FieldRow>> = {
  name: {
    schema: z.string().regex(namePattern),
    must: nameMust,
    doc: 'What the rule is called in headers, metrics and statistics; unique.',
  },
  key: {
    schema: z.custom((value) => keyFault(value) === null),
    must: 'global, ip, session, header:NAME, or a list of 2 to 4 of the last three',
    doc: 'Whom the rule counts: everybody together, each client address, session or value of a header; a list joins several. In code also a function, see docs/library.md.',
    fallback: '`global`',
  },
  limit: {
    schema: z.custom((value) => isWholeTo(limitMax, value) || isPlainFunction(value)),
    must: `a whole number from 0 to ${limitMax}`,
    doc: 'Cost units that a key may use in a window; 0 declines everything. In code also a function, see docs/library.md.',
  },
  window: {
    schema: z.custom((value) => isSpan(value, windowMsMin)),
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
  match: {
    schema: z.custom((value) => matchFault(value) === null),
    must: "methods, paths or both, such as { methods: [POST], paths: ['/login', '/api/*'] }",
    doc: 'Only for requests of these methods to these paths; `GET` includes HEAD, `*` at the end stands for one or more characters.',
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
  burst: {
    schema: z.int().min(1).max(limitMax),
    must: `a whole number from 1 to ${limitMax}`,
    doc: 'Size of the bucket: how much a key that has rested may use at once.',
    fallback: 'the `limit`',
    only: 'token-bucket',
  },
  minInterval: {
    schema: z.custom((value) => isSpan(value, 0)),
    must: 'a span such as 500ms or 30s, or whole milliseconds; up to 366d',
    doc: 'Least time between two attempts of a key.',
    fallback: 'none',
    only: 'rolling-window',
  },
  maxAge: {
    schema: z.custom((value) => isSpan(value, windowMsMin)),
    must: 'a span such as 30s or 5m, or whole milliseconds; 1ms to 366d',
    doc: 'A record older than this is forgotten, so that a strict rule lets go.',
    fallback: 'never',
    only: 'exponential',
  },
  candidates: {
    schema: z.array(z.record(z.string(), z.unknown())).max(candidateCountMax),
    must: `a list of up to ${candidateCountMax} of { limit, window, algorithm }`,
    doc: 'Other limits to compare: each decides and counts beside the rule, on the same keys, and declines nothing.',
    fallback: 'none',
  },
  maxKeys: {
    schema: z.int().min(1).max(keysMax),
    must: `a whole number from 1 to ${keysMax}`,
    doc: 'Most keys tracked at once; beyond it the least used make room.',
    fallback: '1,000,000',
  },
  maxEntries: {
    schema: z.int().min(1).max(entriesMax),
    must: `a whole number from 1 to ${entriesMax}`,
    doc: 'Most entries of all keys together; beyond it the least used keys make room.',
    fallback: '1,000,000',
    only: 'rolling-window',
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
  persist: {
    schema: z.boolean(),
    must: 'true or false',
    doc: 'Where there is a database, the counts of its keys survive a restart; see docs/library.md.',
    fallback: '`true` where the window is 1h or longer',
  },
}

function isSpan(value: unknown, leastMs: number): boolean {
  const spanMs = parseDuration(value)
  return spanMs !== null && spanMs >= leastMs && spanMs <= windowMsMax
}
