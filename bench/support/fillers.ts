/*
 * Contenders for what grows with the number of keys: each takes new keys one at a time. Windows are a day
 * long, so nothing ends while keys are added.
 */
import { MemoryStore as ExpressMemoryStore, type Options } from 'express-rate-limit'
import { RateLimiter } from 'limiter'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { systemClock } from '../../src/core/clock.js'
import { compileRules, type RuleOptions } from '../../src/core/rule.js'
import { RuleLimiter } from '../../src/limiter/limiter.js'
import { MemoryStore } from '../../src/stores/memory/memory-store.js'
import type { KeyCounts } from '../../src/stores/store.js'

export interface Filler {
  /** Counts one attempt of a key; a promise where the library answers with one. */
  add(key: string): unknown
  /** What became of the keys, where the limiter tells. */
  counts?(): KeyCounts
}

const dayMs = 86_400_000
const limit = 100

function tallygate(maxKeys: number | undefined): Filler {
  const options: RuleOptions[] = [{ name: 'ip', key: 'ip', limit, window: dayMs, maxKeys }]
  // The parts of `createLimiter`, for the counts of keys that it does not show.
  const rules = compileRules(options)
  const limiter = new RuleLimiter(options, rules, new MemoryStore(rules, systemClock), null)
  const [rule] = limiter.rules
  return {
    add: (ip) => limiter.decide({ ip }),
    ...(rule === undefined ? {} : { counts: () => limiter.keyCounts(rule) }),
  }
}

function expressRateLimit(): Filler {
  const store = new ExpressMemoryStore()
  store.init({ windowMs: dayMs } as Options)
  return { add: (key) => store.increment(key) }
}

function rateLimiterFlexible(): Filler {
  const limiter = new RateLimiterMemory({ points: limit, duration: dayMs / 1000 })
  return { add: (key) => limiter.consume(key) }
}

function limiterPackage(): Filler {
  const limiters = new Map<string, RateLimiter>()
  return {
    add(key) {
      let limiter = limiters.get(key)
      if (limiter === undefined) {
        limiter = new RateLimiter({ tokensPerInterval: limit, interval: dayMs })
        limiters.set(key, limiter)
      }
      return limiter.tryRemoveTokens(1)
    },
  }
}

function bareMap(): Filler {
  const counts = new Map<string, number>()
  return { add: (key) => counts.set(key, (counts.get(key) ?? 0) + 1) }
}

export const roomyMaxKeys = 20_000_000

export const fillers: Readonly<Record<string, () => Filler>> = {
  'tallygate, maxKeys 20 M': () => tallygate(roomyMaxKeys),
  'tallygate, maxKeys by default': () => tallygate(undefined),
  'express-rate-limit': expressRateLimit,
  'rate-limiter-flexible': rateLimiterFlexible,
  limiter: limiterPackage,
  'bare Map': bareMap,
}

export function fillerOf(name: string): Filler {
  const make = fillers[name]
  if (make === undefined) throw new RangeError(`No such contender: received ${name}`)
  return make()
}
