/*
 * What the admin routes answer, as a schema: exactly the fields, each with its type. Tests hold every answer
 * to it, and docs/admin.schema.json is written from it. Nothing loads it while a gate runs.
 */
import { z } from 'zod'
import { algorithms } from '../core/algorithms/index.js'
import { modes, outcomes, verdicts } from '../core/decision.js'
import { windowKinds } from '../core/windows.js'

const parts = z.registry<{ id: string; description?: string }>()

function part<Schema extends z.ZodType>(id: string, schema: Schema, description?: string): Schema {
  parts.add(schema, description === undefined ? { id } : { id, description })
  return schema
}

/** An object with a field of the same type for each of these names. */
function fieldsOf<Name extends string, Schema extends z.ZodType>(
  names: readonly Name[],
  schema: Schema,
): Record<Name, Schema> {
  return Object.fromEntries(names.map((name) => [name, schema])) as Record<Name, Schema>
}

const whole = z.int().min(0)
const time = part(
  'time',
  z.string().regex(/^([+-]\d{2})?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  'An ISO time of UTC, to the millisecond.',
)
const count = part(
  'count',
  z.union([whole, z.string().regex(/^\d{16,}$/)]),
  'Exact: a number up to 2^53 - 1, above that a string of digits.',
)
const requestFields = fieldsOf(['requests', ...outcomes], count)
const verdictFields = fieldsOf(verdicts, count)
const span = { start: time, end: time }
const requestWindow = part('requestWindow', z.strictObject({ ...span, ...requestFields }))
const verdictWindow = part('verdictWindow', z.strictObject({ ...span, ...verdictFields }))

function windows(schema: z.ZodType) {
  const pair = z.strictObject({ current: schema, previous: schema })
  return z.strictObject(fieldsOf(windowKinds, pair))
}

const key = part(
  'key',
  z.strictObject({
    id: z.string().regex(/^[0-9a-f]{16}$/),
    key: z.string().nullable(),
    requests: whole,
    over: whole,
    countErrorMax: whole,
  }),
  'requests is at most countErrorMax too high, over is never too high; key is an address or null.',
)
const algorithm = z.enum([...algorithms.keys()])
const candidate = part(
  'candidate',
  z.strictObject({
    limit: whole,
    windowMs: z.number().min(1),
    algorithm,
    over: whole,
    keysOver: whole,
  }),
)
const ruleFields = {
  name: z.string(),
  function: z.string().nullable(),
  key: z.string(),
  algorithm,
  limit: whole,
  windowMs: z.number().min(1),
  mode: z.enum(modes),
  strict: z.boolean(),
  trackedKeys: whole,
  evictedKeys: whole,
  peakUtilization: z.number().min(0),
  totals: z.strictObject(verdictFields),
  windows: windows(verdictWindow),
  demand: z.strictObject(fieldsOf(['p50', 'p90', 'p99', 'p999', 'max'], z.number().min(0))),
  candidates: z.array(candidate),
  topKeys: z.array(key),
}

export const answers = {
  /** `GET /admin/stats`, and `gate.stats()`. */
  statistics: z.strictObject({
    generatedAt: time,
    scope: z.enum(['instance', 'cluster']),
    timeZone: z.string(),
    weekStartsOn: z.enum(['monday', 'saturday', 'sunday']),
    since: time,
    totals: z.strictObject(requestFields),
    windows: windows(requestWindow),
    rules: z.array(part('rule', z.strictObject(ruleFields))),
    store: z.strictObject({ kind: z.string(), degraded: z.boolean() }),
    persistence: z.strictObject({
      path: z.string().nullable(),
      lastFlushAt: time.nullable(),
      pending: whole,
      failures: whole,
      sizeBytes: whole,
      movedAside: z.string().nullable(),
      lost: whole,
    }),
  }),
  /** `GET /admin/stats/history`; with a rule its points have verdicts. */
  history: z.strictObject({
    window: z.enum(windowKinds),
    timeZone: z.string(),
    rule: z.string().nullable(),
    points: z.union([
      z.array(z.strictObject({ ...span, label: z.string(), ...requestFields })),
      z.array(z.strictObject({ ...span, label: z.string(), ...verdictFields })),
    ]),
  }),
  /** `GET /admin/keys`. */
  keys: z.strictObject({ heaviest: z.array(key), declined: z.array(key) }),
  /** `POST /admin/explain`. */
  explanation: z.strictObject({
    allowed: z.boolean(),
    rule: z.string().nullable(),
    retryAfterMs: whole.nullable(),
    rules: z.array(
      z.strictObject({
        rule: z.string(),
        applies: z.boolean().nullable(),
        usage: z.number().min(0).nullable(),
        remaining: whole.nullable(),
        verdict: z.enum(verdicts).nullable(),
        retryAfterMs: whole.nullable(),
      }),
    ),
  }),
  /** `PATCH /admin/rules/:name`. */
  changedRule: z.strictObject({ ...ruleFields, restarted: z.boolean(), persisted: z.boolean() }),
  /** `GET /admin/audit`. */
  audit: z.strictObject({
    entries: z.array(
      z.strictObject({
        at: time,
        rule: z.string(),
        action: z.enum(['change', 'forget-key', 'file-wins']),
        before: z.record(z.string(), z.unknown()).nullable(),
        after: z.record(z.string(), z.unknown()).nullable(),
      }),
    ),
  }),
  /** Every refusal, as application/problem+json. */
  problem: z.strictObject({
    type: z.string(),
    title: z.string(),
    status: z.int().min(400).max(599),
    detail: z.string().optional(),
  }),
} as const

export type AnswerName = keyof typeof answers

/** The same as a JSON schema, draft 2020-12: one definition for each answer, and for what they share. */
export function answerSchema(): object {
  for (const [id, schema] of Object.entries(answers)) parts.add(schema, { id })
  const { schemas } = z.toJSONSchema(parts, { uri: (id) => `#/$defs/${id}` })
  const definitions = Object.entries(schemas).map(([id, schema]) => {
    const { $schema: _dialect, $id: _id, ...definition } = schema
    return [id, definition]
  })
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Answers of the admin routes of tallygate',
    $defs: Object.fromEntries(definitions),
  }
}
