/*
 * The keys of a rule as the admin routes name them: by the ids under which statistics list them. An id says
 * nothing about whom it stands for, holds in this process alone and ends with it.
 */
import type { Clock } from '../core/clock.js'
import { shown } from '../core/errors.js'
import { keyKinds, type Key } from '../core/key.js'
import { wordsOfKeyId, type KeyWords } from '../core/key-id.js'
import type { CompiledRule } from '../core/rule.js'
import type { RuleLimiter } from '../limiter/limiter.js'
import type { HeavyKey } from '../metrics/heavy-keys.js'
import type { Recorder } from '../metrics/recorder.js'
import { readQuery, ruleNamed } from './asked.js'
import { Refusal } from './answers.js'

export interface KeyParts {
  readonly limiter: RuleLimiter
  readonly recorder: Recorder
  /** The rules' clock is its monotonic one. */
  readonly clock: Clock
}

export interface KeyLists {
  /** The keys that made the most attempts. */
  heaviest: HeavyKey[]
  /** The keys that were over the limit most often. */
  declined: HeavyKey[]
}

const limitDefault = 20
/** More than two windows list. */
const limitMax = 1_000

export const keyIdMust = '16 hexadecimal digits, the id of a key in /admin/keys'

/** Answers `GET /admin/keys`. */
export function keyLists(url: string, { limiter, recorder, clock }: KeyParts): KeyLists {
  const asked = readQuery(url, ['rule', 'limit'])
  if (asked.rule === undefined) {
    const names = limiter.rules.map(({ name }) => name).join(', ')
    throw new Refusal(400, `rule must be one of ${names}: received nothing`)
  }
  const rule = ruleNamed(limiter, asked.rule)
  const limit = limitOf(asked.limit)
  const keys = recorder.heavyKeys(rule)
  const nowMs = clock.monotonicMs()
  return {
    heaviest: keys?.heaviest(nowMs, limit) ?? [],
    declined: keys?.mostDeclined(nowMs, limit) ?? [],
  }
}

/** A key of which nothing is known but its hash: enough for a table in this process. */
export function keyOfId(id: string): Key {
  const words = wordsOfKeyId(id)
  if (words === null) {
    throw new Refusal(400, `a key must be named by ${keyIdMust}: received ${shown(id)}`)
  }
  return { kind: keyKinds.given, text: '', ...words }
}

/** What is known of a key that a rule has counted of late; null where it has not. */
export function listedKey(
  rule: CompiledRule,
  key: KeyWords,
  { recorder, clock }: KeyParts,
): HeavyKey | null {
  return recorder.heavyKeys(rule)?.entry(key, clock.monotonicMs()) ?? null
}

/** Whether a rule counts that key now, or has of late. */
export async function isKnownKey(rule: CompiledRule, key: Key, parts: KeyParts): Promise<boolean> {
  if (listedKey(rule, key, parts) !== null) return true
  const { verdicts } = await parts.limiter.review({ rules: [rule], keys: [key], cost: 1 })
  return verdicts.some(({ usage }) => usage > 0)
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return limitDefault
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= limitMax) return limit
  throw new Refusal(
    400,
    `limit must be a whole number from 1 to ${limitMax}: received ${shown(text)}`,
  )
}
