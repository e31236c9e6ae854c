/*
 * The plan of a run, without a network: what a seed gives, how much it sends, and what the shipped limits
 * make of it, asked of the limiter itself on a clock of its own.
 */
import { describe, expect, it } from 'vitest'
import { readConfig } from '../../src/gate/config-file.js'
import { createLimiter } from '../../src/limiter/index.js'
import { manualClock } from '../../src/testing/index.js'
import { Latency } from '../../src/traffic/latency.js'
import { moments } from '../../src/traffic/pace.js'
import { Population } from '../../src/traffic/population.js'
import { seededRandom } from '../../src/traffic/random.js'

interface Planned {
  atMs: number
  address: string
  method: string
  path: string
}

/** Everything a run would send if each session began and ended as asked. */
function* plan(seed: number, durationMs = 60_000, rate = 30): Generator<Planned> {
  const random = seededRandom(seed)
  const population = new Population(random)
  for (const moment of moments({ durationMs, rate, random })) {
    for (const { client, asked } of population.requests(moment)) {
      yield { atMs: moment.atMs, address: client.address, ...asked }
      if (asked.method === 'POST') client.learn(asked, 201, [`sid=${client.address}; Path=/`])
      if (asked.method === 'DELETE') client.learn(asked, 204, [])
    }
  }
}

describe('the plan of a run', () => {
  it('is the same for the same seed and another for another', () => {
    expect([...plan(7)]).toEqual([...plan(7)])
    expect([...plan(7)]).not.toEqual([...plan(8)])
  })

  it('keeps the mean rate, bursts included, and the order of time', () => {
    for (const [durationMs, rate] of [
      [60_000, 30],
      [600_000, 5],
      [60_000, 500],
    ] as const) {
      const times = [...plan(3, durationMs, rate)].map(({ atMs }) => atMs)
      const expected = (rate * durationMs) / 1_000
      expect(Math.abs(times.length - expected)).toBeLessThan(4 * Math.sqrt(expected))
      expect(times).toEqual(times.toSorted((a, b) => a - b))
      expect(times.at(-1)).toBeLessThan(durationMs)
    }
  })

  it('has a burst every ten to fifteen seconds, and an early one', () => {
    const pace = { durationMs: 300_000, rate: 30, random: seededRandom(11) }
    const bursts = [...moments(pace)].filter(({ isBurst }) => isBurst)
    expect(bursts[0]?.atMs).toBeLessThan(3_500)
    expect(bursts.every(({ requestCount }) => requestCount === 60)).toBe(true)
    const gapsMs = bursts.slice(1).map(({ atMs }, index) => atMs - (bursts[index]?.atMs ?? 0))
    expect(Math.min(...gapsMs)).toBeGreaterThanOrEqual(10_000)
    expect(Math.max(...gapsMs)).toBeLessThan(15_000)
  })

  it('sends from forty networks of documentation addresses', () => {
    const { clients } = new Population(seededRandom(5))
    const networks = clients.map(({ address }) => address.split('::', 1)[0])
    expect(new Set(networks).size).toBe(40)
    for (const { address } of clients) {
      expect(address).toMatch(
        /^(203\.0\.113\.\d+|198\.51\.100\.\d+|2001:db8:0:[0-9a-f]+::[0-9a-f]+)$/,
      )
    }
  })

  // The help of `tallygate traffic` promises it; sliding windows make it depend on when the run begins.
  it('passes three shipped limits or more within a minute, and mostly all four', () => {
    const passedCounts = Array.from({ length: 20 }, (_, step) => passedLimits(step * 3_000).size)
    expect(Math.min(...passedCounts)).toBeGreaterThanOrEqual(3)
    expect(passedCounts.filter((count) => count === 4).length).toBeGreaterThan(10)
  })
})

/** The rules that a minute at the default rate passes, when it begins so far into a window. */
function passedLimits(intoWindowMs: number): Set<string> {
  const startMs = 1_760_000_040_000 + intoWindowMs
  const clock = manualClock(startMs)
  const limiter = createLimiter({ rules: readConfig('tallygate.yml').rules, clock })
  const random = seededRandom(intoWindowMs)
  const population = new Population(random)
  const over = new Set<string>()
  for (const moment of moments({ durationMs: 60_000, rate: 30, random })) {
    clock.set(startMs + moment.atMs)
    for (const { client, asked } of population.requests(moment)) {
      const facts = { ip: client.address, session: client.headers()['Cookie'] }
      const isParse = asked.path.startsWith('api/parse')
      const { allowed, verdicts } = limiter.decide(facts, isParse ? { also: 'parse-url' } : {})
      for (const { rule, verdict } of verdicts) if (verdict === 'over') over.add(rule)
      const status = asked.method === 'POST' ? 201 : 204
      client.learn(asked, allowed ? status : 429, [`sid=${client.address}`])
    }
  }
  limiter.close()
  return over
}

describe('latency', () => {
  it('gives quantiles right to one part in a hundred', () => {
    const latency = new Latency()
    expect(latency.quantileMs(0.5)).toBeNull()
    for (let ms = 1; ms <= 1_000; ms++) latency.observe(ms)
    expect(Math.abs((latency.quantileMs(0.5) ?? 0) / 500 - 1)).toBeLessThan(0.011)
    expect(Math.abs((latency.quantileMs(0.99) ?? 0) / 990 - 1)).toBeLessThan(0.011)
  })
})
