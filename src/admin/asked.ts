/*
 * What admin routes are asked: parameters of an address, fields of a JSON body, the rule that is meant. All
 * of it is checked by name and value; what is unknown is refused, naming the nearest known, so that a slip
 * of the fingers never changes the answer in silence.
 */
import { shown } from '../core/errors.js'
import type { CompiledRule } from '../core/rule.js'
import { nearestName } from '../core/spelling.js'
import type { RuleLimiter } from '../limiter/limiter.js'
import { Refusal } from './answers.js'

/** What a field may hold: text that passes, said in words that complete "FIELD must be …". */
export interface TextField {
  readonly must: string
  readonly isRight: (text: string) => boolean
}

/** The parameters of an address; empty ones are left out, as forms send them. */
export function readQuery<Name extends string>(
  url: string,
  known: readonly Name[],
): Partial<Record<Name, string>> {
  const mark = url.indexOf('?')
  const given = new URLSearchParams(mark === -1 ? '' : url.slice(mark))
  const found: Partial<Record<Name, string>> = {}
  for (const [name, value] of given) {
    if (!isOneOf(known, name)) refuseName('parameter', name, known)
    if (value === '') continue
    if (found[name] !== undefined) {
      throw new Refusal(400, `${name} must be given once: received it twice`)
    }
    found[name] = value
  }
  return found
}

/** The fields of a body that hold text; null stands for one that is left out. */
export function readTexts<Name extends string>(
  body: unknown,
  fields: Readonly<Record<Name, TextField>>,
): Partial<Record<Name, string>> {
  const known = Object.keys(fields) as Name[]
  const found: Partial<Record<Name, string>> = {}
  for (const [name, value] of Object.entries(readObject(body, known))) {
    if (value === null) continue
    const { must, isRight } = fields[name as Name]
    if (typeof value !== 'string' || !isRight(value)) {
      throw new Refusal(400, `${name} must be ${must}: received ${shown(value)}`)
    }
    found[name as Name] = value
  }
  return found
}

/** A body that is an object of known fields. */
export function readObject(
  body: unknown,
  known: readonly string[],
  refuse: (name: string) => never = (name) => refuseName('field', name, known),
): Readonly<Record<string, unknown>> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new Refusal(
      400,
      `the body must be a JSON object with any of ${known.join(', ')}: received ${shown(body)}`,
    )
  }
  for (const name of Object.keys(body)) {
    if (!known.includes(name)) refuse(name)
  }
  return body as Record<string, unknown>
}

export function ruleNamed(limiter: RuleLimiter, name: string): CompiledRule {
  const rule = limiter.rules.find((each) => each.name === name)
  if (rule !== undefined) return rule
  const names = limiter.rules.map((each) => each.name)
  throw new Refusal(404, `no rule is called ${shown(name)}${adviceFor(name, names)}`)
}

export function refuseName(kind: string, name: string, known: readonly string[]): never {
  throw new Refusal(400, `unknown ${kind} ${shown(name)}${adviceFor(name, known)}`)
}

function adviceFor(name: string, known: readonly string[]): string {
  const near = nearestName(name, known)
  return `${near === null ? '' : `, did you mean ${near}?`} (known: ${known.join(', ')})`
}

function isOneOf<Name extends string>(known: readonly Name[], name: string): name is Name {
  return (known as readonly string[]).includes(name)
}
