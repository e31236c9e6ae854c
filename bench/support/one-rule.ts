/*
 * The contenders for one rule: the same limit and window for each, so high a limit that every attempt is
 * allowed. Each has a loop of its own, or the compiler's type feedback of one would slow down the others;
 * a library whose answer is a promise is awaited, as its users do.
 */
import { MemoryStore as ExpressMemoryStore, type Options } from 'express-rate-limit'
import { RateLimiter } from 'limiter'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { InMemoryRateLimiter } from 'rolling-rate-limiter'
import { KeyHasher } from '../../src/core/hash.js'
import { createLimiter } from '../../src/limiter/index.js'
import type { Texts } from './keys.js'
import type { Contender } from './rounds.js'

export const windowMs = 900_000
export const limit = 1_000_000_000
export const peer = 'express-rate-limit'

export type MakeContender = (keys: Texts) => Contender

export function tallygate(keys: Texts): Contender {
  const limiter = createLimiter({ rules: [{ name: 'ip', key: 'ip', limit, window: windowMs }] })
  return {
    name: 'tallygate',
    how: "`createLimiter(…).decide({ ip })`, `key: ip`, sliding window, all else by default; the address is normalised, the whole decision is made; the window's older half is empty",
    run(order, from, to) {
      let allowed = 0
      for (let index = from; index < to; index++) {
        const decision = limiter.decide({ ip: keys.at(order[index] as number) })
        if (decision.allowed) allowed++
      }
      return allowed
    },
    close: () => limiter.close(),
  }
}

export function expressStore(): ExpressMemoryStore {
  const store = new ExpressMemoryStore()
  store.init({ windowMs } as Options)
  return store
}

export function expressRateLimit(keys: Texts): Contender {
  const store = expressStore()
  return {
    name: peer,
    how: '`await store.increment(key)` of its MemoryStore, as its middleware does, and a comparison with the limit; without the middleware around it',
    async run(order, from, to) {
      let allowed = 0
      for (let index = from; index < to; index++) {
        const { totalHits } = await store.increment(keys.at(order[index] as number))
        if (totalHits <= limit) allowed++
      }
      return allowed
    },
    close: () => store.shutdown(),
  }
}

export function rateLimiterFlexible(keys: Texts): Contender {
  const limiter = new RateLimiterMemory({ points: limit, duration: windowMs / 1000 })
  return {
    name: 'rate-limiter-flexible',
    how: '`await consume(key)` of RateLimiterMemory, all else by default',
    async run(order, from, to) {
      let allowed = 0
      for (let index = from; index < to; index++) {
        const answer = await limiter.consume(keys.at(order[index] as number))
        if (answer.remainingPoints >= 0) allowed++
      }
      return allowed
    },
    close: () => undefined,
  }
}

export function limiterPackage(keys: Texts): Contender {
  const limiters = new Map<string, RateLimiter>()
  return {
    name: 'limiter',
    how: '`tryRemoveTokens(1)` of a RateLimiter for each key, in a Map; it has no keys of its own and forgets none',
    run(order, from, to) {
      let allowed = 0
      for (let index = from; index < to; index++) {
        const key = keys.at(order[index] as number)
        let limiter = limiters.get(key)
        if (limiter === undefined) {
          limiter = new RateLimiter({ tokensPerInterval: limit, interval: windowMs })
          limiters.set(key, limiter)
        }
        if (limiter.tryRemoveTokens(1)) allowed++
      }
      return allowed
    },
    close: () => limiters.clear(),
  }
}

const rollingLimit = 100

export function rollingRateLimiter(keys: Texts): Contender {
  const limiter = new InMemoryRateLimiter({ interval: windowMs, maxInInterval: rollingLimit })
  const counts = new Uint8Array(keys.count)
  return {
    name: 'rolling-rate-limiter',
    how: `\`await limit(key)\` of InMemoryRateLimiter, limit ${rollingLimit}; a key is cleared after ${rollingLimit} attempts, as if its window had passed: it keeps every attempt, also a declined one, and reads all of them each time`,
    async run(order, from, to) {
      let allowed = 0
      for (let index = from; index < to; index++) {
        const position = order[index] as number
        const key = keys.at(position)
        if ((counts[position] as number) >= rollingLimit) {
          counts[position] = 0
          await limiter.clear(key)
        }
        counts[position] = (counts[position] as number) + 1
        if (!(await limiter.limit(key))) allowed++
      }
      return allowed
    },
    async close() {
      // Its timers would keep the process alive for a whole window.
      for (let index = 0; index < keys.count; index++) await limiter.clear(keys.at(index))
    },
  }
}

export function bareMap(keys: Texts): Contender {
  const counts = new Map<string, number>()
  return {
    name: 'bare Map',
    how: 'the floor: a counter for each key in a Map, no time, no window, no end',
    run(order, from, to) {
      let allowed = 0
      for (let index = from; index < to; index++) {
        const key = keys.at(order[index] as number)
        const count = (counts.get(key) ?? 0) + 1
        counts.set(key, count)
        if (count <= limit) allowed++
      }
      return allowed
    },
    close: () => counts.clear(),
  }
}

export function textAlone(keys: Texts): Contender {
  const hasher = new KeyHasher()
  return {
    name: 'reading the key',
    how: 'no limiter: the text is read and hashed, which nobody who keeps no texts can do without',
    run(order, from, to) {
      let allowed = 0
      for (let index = from; index < to; index++) {
        hasher.hash(1, keys.at(order[index] as number))
        if (hasher.low !== 0) allowed++
      }
      return allowed
    },
    close: () => undefined,
  }
}
