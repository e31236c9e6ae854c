/*
 * The contenders for four rules in one attempt: everybody, the address, the session, and a function by
 * address. Tallygate's is made of the gate's own parts as `createGate` makes it without a database: rules,
 * store, limiter, recorder and tallies; what a request counts beside its rules is counted too.
 */
import { systemClock } from '../../src/core/clock.js'
import type { Decision } from '../../src/core/decision.js'
import { compileRules, type RuleOptions } from '../../src/core/rule.js'
import { createCounting } from '../../src/gate/counting.js'
import { RuleLimiter } from '../../src/limiter/limiter.js'
import { MemoryStore } from '../../src/stores/memory/memory-store.js'
import { createCalendar } from '../../src/tally/calendar.js'
import { expressStore, limit, peer, windowMs } from './one-rule.js'
import type { Texts } from './keys.js'
import type { Contender } from './rounds.js'

export interface Clients {
  readonly ips: Texts
  readonly sessions: Texts
}

const rules: readonly RuleOptions[] = [
  { name: 'global', key: 'global', limit, window: windowMs },
  { name: 'ip', key: 'ip', limit, window: windowMs },
  { name: 'session', key: 'session', limit, window: windowMs },
  { name: 'checkout', key: 'ip', function: 'checkout', limit, window: windowMs },
]

const logger = { info() {}, warn() {}, error() {} }
const states = { restore() {} }

export function tallygateGate({ ips, sessions }: Clients): Contender {
  const compiled = compileRules(rules)
  const calendar = createCalendar()
  const parts = { path: undefined, rules: compiled, calendar, clock: systemClock }
  const { observer, countRequest } = createCounting({ ...parts, logger, states })
  const store = new MemoryStore(compiled, systemClock)
  const limiter = new RuleLimiter(rules, compiled, store, observer)
  const asked = { also: 'checkout' }
  return {
    name: 'tallygate',
    how: '`decide({ ip, session }, { also })` of the gate’s parts: all or nothing over four rules, each verdict and the request’s outcome counted for metrics and tallies; without the once-a-second flush',
    run(order, from, to) {
      let allowed = 0
      for (let index = from; index < to; index++) {
        const client = order[index] as number
        const facts = { ip: ips.at(client), session: sessions.at(client) }
        // A MemoryStore answers at once.
        const decision = limiter.decide(facts, asked) as Decision
        countRequest(decision.allowed ? 0 : 1)
        if (decision.allowed && decision.verdicts.length === rules.length) allowed++
      }
      return allowed
    },
    close: () => limiter.close(),
  }
}

export function expressFour({ ips, sessions }: Clients): Contender {
  const stores = rules.map(expressStore)
  const [everybody, byIp, bySession, byFunction] = stores as [Store, Store, Store, Store]
  return {
    name: peer,
    how: 'four MemoryStores, each `increment` awaited in turn, stopping where one declines; keys `global`, address, session, address',
    async run(order, from, to) {
      let allowed = 0
      for (let index = from; index < to; index++) {
        const client = order[index] as number
        const ip = ips.at(client)
        if ((await everybody.increment('global')).totalHits > limit) continue
        if ((await byIp.increment(ip)).totalHits > limit) continue
        if ((await bySession.increment(sessions.at(client))).totalHits > limit) continue
        if ((await byFunction.increment(ip)).totalHits > limit) continue
        allowed++
      }
      return allowed
    },
    close: () => stores.forEach((store) => store.shutdown()),
  }
}

type Store = ReturnType<typeof expressStore>

export function bareMaps({ ips, sessions }: Clients): Contender {
  const maps = rules.map(() => new Map<string, number>())
  const count = (map: Map<string, number> | undefined, key: string) => {
    const next = (map?.get(key) ?? 0) + 1
    map?.set(key, next)
    return next <= limit
  }
  return {
    name: 'four bare Maps',
    how: 'the floor: a counter in each of four Maps',
    run(order, from, to) {
      let allowed = 0
      const [everybody, byIp, bySession, byFunction] = maps
      for (let index = from; index < to; index++) {
        const client = order[index] as number
        const ip = ips.at(client)
        const isAllowed =
          count(everybody, 'global') &&
          count(byIp, ip) &&
          count(bySession, sessions.at(client)) &&
          count(byFunction, ip)
        if (isAllowed) allowed++
      }
      return allowed
    },
    close: () => maps.forEach((map) => map.clear()),
  }
}
