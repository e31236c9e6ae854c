/*
 * What would become of a request, rule by rule: which would apply, how each stands, what it would say. Only
 * looked at: nothing is taken, counted or left behind. The facts are what was asked and nothing else, so a
 * function of a rule that needs the request itself cannot be answered for: then `applies` is null.
 */
import type { AddressList } from '../core/address-list.js'
import { canonicalAddress } from '../core/address.js'
import type { RuleVerdict, Verdict } from '../core/decision.js'
import { planOf, type Facts } from '../core/facts.js'
import type { Key } from '../core/key.js'
import { wordsOfKeyId } from '../core/key-id.js'
import type { CompiledRule } from '../core/rule.js'
import type { HttpRequest } from '../express/http.js'
import { RequestFacts } from '../express/request-facts.js'
import { readTexts, type TextField } from './asked.js'
import { isKnownKey, keyIdMust, keyOfId, listedKey, type KeyParts } from './keys.js'

export interface ExplainedRule {
  rule: string
  /** null where a function of the rule cannot say without the request. */
  applies: boolean | null
  usage: number | null
  remaining: number | null
  verdict: Verdict | null
  /** null where the rule does not apply, and where it would never allow it. */
  retryAfterMs: number | null
}

export interface Explanation {
  allowed: boolean
  rule: string | null
  retryAfterMs: number | null
  rules: ExplainedRule[]
}

export interface ExplainParts extends KeyParts {
  readonly exempt: AddressList
}

/** A rule that would apply, as it is for these facts, and whom it would count. */
interface Applying {
  readonly rule: CompiledRule
  readonly key: Key
}

type Asked = Partial<Record<'method' | 'path' | 'address' | 'keyId' | 'function', string>>

/** @param app says how paths are compared there. */
export async function explain(
  body: unknown,
  app: HttpRequest['app'],
  parts: ExplainParts,
): Promise<Explanation> {
  const asked = readTexts(body, fieldsFor(parts))
  const key = asked.keyId === undefined ? null : keyOfId(asked.keyId)
  const facts = factsOf(asked, key, app, parts)
  const isExempt = facts.ip !== undefined && parts.exempt.contains(facts.ip)
  const found = new Map<string, Applying | null | undefined>()
  for (const rule of isExempt ? [] : parts.limiter.rules) {
    if (!isFor(rule, asked.function, facts)) continue
    found.set(rule.name, await applying(rule, facts, key, parts))
  }
  const list = [...found.values()].filter((each) => each !== null && each !== undefined)
  const decision = await parts.limiter.review({
    rules: list.map(({ rule }) => rule),
    keys: list.map((each) => each.key),
    cost: 1,
  })
  const verdicts = new Map(decision.verdicts.map((verdict) => [verdict.rule, verdict]))
  return {
    allowed: decision.allowed,
    rule: decision.rule,
    retryAfterMs: finite(decision.retryAfterMs),
    rules: parts.limiter.rules.map(({ name }) =>
      explained(name, verdicts.get(name), found.get(name) === null),
    ),
  }
}

/** Whether a rule is for such an attempt at all. */
function isFor(rule: CompiledRule, calledFunction: string | undefined, facts: Facts): boolean {
  if (rule.mode === 'disabled') return false
  if (rule.function !== null && rule.function !== calledFunction) return false
  return rule.match === null || rule.match.includes(facts)
}

/** null where the rule cannot say; undefined where there is nobody that it would count. */
async function applying(
  rule: CompiledRule,
  facts: Facts,
  named: Key | null,
  parts: ExplainParts,
): Promise<Applying | null | undefined> {
  const isNamed = named !== null && rule.key !== 'global' && (await isKnownKey(rule, named, parts))
  try {
    const key = isNamed ? named : parts.limiter.keyOf(rule, facts)
    return key === null ? undefined : { rule: planOf(rule, facts), key }
  } catch {
    // The application's own function, called with less than a request has.
    return null
  }
}

/** An address that the key's id stands for is as good as one that was asked about. */
function factsOf(
  asked: Asked,
  key: Key | null,
  app: HttpRequest['app'],
  parts: ExplainParts,
): Facts {
  const { method, path, address } = asked
  const listed = key === null ? [] : parts.limiter.rules.map((rule) => listedKey(rule, key, parts))
  const known = listed.find((entry) => entry !== null && isWholeAddress(entry.key))?.key
  const ip = address === undefined ? (known ?? undefined) : (canonicalAddress(address) ?? undefined)
  const request = { method, url: path, originalUrl: path, headers: {}, app } as HttpRequest
  const facts = new RequestFacts().of(request, ip ?? '', undefined, true)
  return { ...facts, ip, path: path === undefined ? undefined : facts.path, request: undefined }
}

/** An IPv6 key is the start of an address, of a length that other rules may cut otherwise. */
function isWholeAddress(text: string | null): boolean {
  return text !== null && !text.includes(':')
}

function explained(
  name: string,
  found: RuleVerdict | undefined,
  isUnknown: boolean,
): ExplainedRule {
  return {
    rule: name,
    applies: isUnknown ? null : found !== undefined,
    usage: found?.usage ?? null,
    remaining: found?.remaining ?? null,
    verdict: found?.verdict ?? null,
    retryAfterMs: found === undefined ? null : finite(found.retryAfterMs),
  }
}

/** JSON has no Infinity. */
function finite(valueMs: number): number | null {
  return Number.isFinite(valueMs) ? valueMs : null
}

function fieldsFor({ limiter }: ExplainParts): Readonly<Record<keyof Asked, TextField>> {
  const functions = [...new Set(limiter.rules.flatMap((rule) => rule.function ?? []))]
  return {
    method: {
      must: 'a method such as GET',
      isRight: (text) => /^[a-z-]{1,32}$/i.test(text),
    },
    path: {
      must: 'a path as it stands in a request, such as /api/ping',
      isRight: (text) => text.startsWith('/'),
    },
    address: {
      must: 'an IP address such as 203.0.113.7',
      isRight: (text) => canonicalAddress(text) !== null,
    },
    keyId: { must: keyIdMust, isRight: (text) => wordsOfKeyId(text) !== null },
    function: {
      must:
        functions.length === 0
          ? 'left out, because no rule is for a function'
          : `one of ${functions.join(', ')}`,
      isRight: (text) => functions.includes(text),
    },
  }
}
