/*
 * What the sliding window promises, over random limits, windows, costs and times: by its definition in
 * exact whole numbers, and by what its users rely on.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileRules, type RuleOptions } from '../../../src/core/rule.js'
import { RuleLimiter, type Attempt } from '../../../src/limiter/limiter.js'
import { createLimiter, type Decision, type Limiter } from '../../../src/limiter/index.js'
import { MemoryStore } from '../../../src/stores/memory/memory-store.js'
import { manualClock, type ManualClock } from '../../../src/testing/index.js'
import { epochMs, ipRule, someone } from '../../support/units/limits.js'

interface Step {
  /** Time since the step before, as a share of the window. */
  gap: number
  cost: number
}

const limits = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 100_000 }))
const windows = fc.oneof(
  fc.integer({ min: 1, max: 50 }),
  fc.constantFrom(1_000, 60_000, 3_600_000, 86_400_000),
  fc.integer({ min: 1, max: 2 ** 31 }),
)
const gaps = fc.oneof(
  fc.constantFrom(0, 0, 0, 0.25, 0.5, 1, 2),
  fc.double({ min: 0, max: 0.3, noNaN: true }),
  fc.double({ min: 0, max: 2.5, noNaN: true }),
)

const scenarios = fc
  .record({ limit: limits, window: windows, strict: fc.boolean() })
  .chain((rule) =>
    fc.record({
      rule: fc.constant(rule),
      start: fc.nat(1_000_000),
      steps: fc.array(
        fc.record({
          gap: gaps,
          cost: fc.oneof(
            fc.constantFrom(1, 1, 1, rule.limit, rule.limit + 1),
            fc.integer({ min: 1, max: Math.max(1, Math.ceil(rule.limit / 2)) }),
          ),
        }),
        { minLength: 1, maxLength: 40 },
      ),
    }),
  )

type Scenario = typeof scenarios extends fc.Arbitrary<infer Value> ? Value : never

/** Runs the steps of a scenario; `look` is called before and after each. */
function run(
  { rule, start, steps }: Scenario,
  onStep: (parts: {
    decision: Decision
    nowMs: number
    step: Step
    limiter: Limiter
    clock: ManualClock
  }) => void,
  wholeMs = false,
): void {
  const clock = manualClock(epochMs + start)
  const limiter = createLimiter({ rules: [ipRule(rule)], clock })
  for (const step of steps) {
    const spanMs = step.gap * rule.window
    clock.advance(wholeMs ? Math.floor(spanMs) : spanMs)
    const decision = limiter.decide(someone, { cost: step.cost })
    onStep({ decision, nowMs: clock.monotonicMs(), step, limiter, clock })
  }
}

function limiterOf(limit: number, window: number) {
  const clock = manualClock(epochMs)
  const options = [ipRule({ limit, window })]
  const rules = compileRules(options)
  const limiter = new RuleLimiter(options, rules, new MemoryStore(rules, clock), null)
  const usage = () => (limiter.peek(someone) as Decision).verdicts[0]?.usage as number
  return { clock, limiter, usage }
}

const answersOf = (
  list: readonly RuleOptions[],
  taken: { gapMs: number; who: number; cost: number }[],
) => {
  const clock = manualClock(epochMs)
  const limiter = createLimiter({ rules: list, clock })
  return taken.map(({ gapMs, who, cost }) => {
    clock.advance(gapMs)
    const facts = { ip: `10.0.0.${who}`, session: `s${who % 2}` }
    const { allowed, retryAfterMs, verdicts } = limiter.decide(facts, { cost })
    return {
      allowed,
      retryAfterMs,
      verdicts: verdicts.toSorted((a, b) => (a.rule < b.rule ? -1 : 1)),
    }
  })
}

describe('the definition in exact whole numbers', () => {
  /** The definition and nothing else, over BigInt; usage is scaled by the window. */
  class Model {
    readonly #counts = new Map<bigint, bigint>()
    readonly #limit: bigint
    readonly #window: bigint
    readonly #strict: boolean

    constructor(limit: number, window: number, strict: boolean) {
      this.#limit = BigInt(limit)
      this.#window = BigInt(window)
      this.#strict = strict
    }

    used(nowMs: bigint): bigint {
      const index = nowMs / this.#window
      const toCome = this.#window - (nowMs % this.#window)
      const current = this.#counts.get(index) ?? 0n
      return current * this.#window + (this.#counts.get(index - 1n) ?? 0n) * toCome
    }

    fits(nowMs: bigint, cost: bigint): boolean {
      return this.used(nowMs) + cost * this.#window <= this.#limit * this.#window
    }

    add(nowMs: bigint, cost: bigint): void {
      const index = nowMs / this.#window
      this.#counts.set(index, (this.#counts.get(index) ?? 0n) + cost)
    }

    /** The least whole wait, by halving: usage only falls while nothing is added. */
    wait(nowMs: bigint, cost: bigint): number {
      if (cost > this.#limit) return Infinity
      if (this.fits(nowMs, cost)) return 0
      let [tooShort, enough] = [0n, 2n * this.#window]
      while (enough - tooShort > 1n) {
        const middle = (tooShort + enough) / 2n
        if (this.fits(nowMs + middle, cost)) enough = middle
        else tooShort = middle
      }
      return Number(enough)
    }

    empty(nowMs: bigint): number {
      const index = nowMs / this.#window
      const last = [index, index - 1n].find((of) => (this.#counts.get(of) ?? 0n) > 0n)
      return last === undefined ? 0 : Number((last + 2n) * this.#window - nowMs)
    }

    decide(nowMs: bigint, cost: bigint) {
      const allowed = this.fits(nowMs, cost)
      if (allowed || this.#strict) this.add(nowMs, cost)
      const used = this.used(nowMs)
      const left = this.#limit * this.#window - used
      return {
        allowed,
        remaining: left > 0n ? Number(left / this.#window) : 0,
        retryAfterMs: allowed ? 0 : this.wait(nowMs, cost),
        resetMs: this.empty(nowMs),
        usage: Number(used) / Number(this.#window),
      }
    }
  }

  it('is what a limiter answers at every whole millisecond', () => {
    fc.assert(
      fc.property(scenarios, (scenario) => {
        const { limit, window, strict } = scenario.rule
        const model = new Model(limit, window, strict)
        run(
          scenario,
          ({ decision, nowMs, step }) => {
            const { allowed, remaining, retryAfterMs, resetMs } = decision
            const usage = decision.verdicts[0]?.usage
            expect({ allowed, remaining, retryAfterMs, resetMs, usage }).toEqual(
              model.decide(BigInt(nowMs), BigInt(step.cost)),
            )
          },
          true,
        )
      }),
      { numRuns: 500 },
    )
  })
})

describe('what is promised', () => {
  it('no window of W, wherever it lies, sees more than the limit and the share of it that has passed', () => {
    fc.assert(
      fc.property(scenarios, (scenario) => {
        const { limit, window } = scenario.rule
        const allowed: { atMs: number; cost: number }[] = []
        run(scenario, ({ decision, nowMs, step }) => {
          if (!decision.allowed) return
          allowed.push({ atMs: nowMs, cost: step.cost })
          const sum = (fromMs: number) =>
            allowed.reduce((cost, entry) => cost + (entry.atMs > fromMs ? entry.cost : 0), 0)
          const intoMs = nowMs % window
          // In the window since the epoch, the limit; in the last W, the limit and what may lie over.
          expect(sum(nowMs - intoMs - Number.EPSILON)).toBeLessThanOrEqual(limit)
          expect(sum(nowMs - window)).toBeLessThanOrEqual(limit + (limit * intoMs) / window + 1e-6)
          expect(sum(nowMs - window)).toBeLessThanOrEqual(2 * limit)
        })
      }),
    )
  })

  it('declined until just before the announced time, and allowed exactly then', () => {
    fc.assert(
      fc.property(scenarios, (scenario) => {
        run(scenario, ({ decision, nowMs, step, limiter, clock }) => {
          const waitMs = decision.retryAfterMs
          const isEndless = step.cost > scenario.rule.limit
          expect(waitMs === 0).toBe(decision.allowed)
          expect(waitMs === Infinity).toBe(isEndless)
          if (decision.allowed || isEndless) return
          expect(Number.isInteger(waitMs)).toBe(true)
          expect(waitMs).toBeGreaterThanOrEqual(1)
          const asked = (afterMs: number) => {
            clock.set(nowMs + afterMs)
            return limiter.peek(someone, { cost: step.cost }).allowed
          }
          const answers = [waitMs > 1 && asked(waitMs - 1), asked(waitMs)]
          clock.set(nowMs)
          expect(answers).toEqual([false, true])
        })
      }),
      { numRuns: 400 },
    )
  })

  it('over several rules the announced time is the first at which all allow the same attempt', () => {
    const rules = fc.uniqueArray(
      fc.record({
        name: fc.constantFrom('a', 'b', 'c'),
        limit: fc.integer({ min: 1, max: 6 }),
        window: fc.constantFrom(700, 1_000, 3_000),
        strict: fc.boolean(),
      }),
      { minLength: 1, selector: ({ name }) => name },
    )
    const steps = fc.array(
      fc.record({
        gapMs: fc.double({ min: 0, max: 900, noNaN: true }),
        cost: fc.constantFrom(1, 1, 2),
      }),
      { minLength: 5, maxLength: 40 },
    )
    fc.assert(
      fc.property(rules, steps, (options, taken) => {
        const clock = manualClock(epochMs)
        const limiter = createLimiter({ rules: options.map((fields) => ipRule(fields)), clock })
        for (const { gapMs, cost } of taken) {
          clock.advance(gapMs)
          const nowMs = clock.monotonicMs()
          const { allowed, retryAfterMs } = limiter.decide(someone, { cost })
          if (allowed || retryAfterMs === Infinity) continue
          clock.set(nowMs + retryAfterMs)
          expect(limiter.peek(someone, { cost }).allowed).toBe(true)
          clock.set(nowMs + retryAfterMs - 1)
          expect(retryAfterMs > 1 && limiter.peek(someone, { cost }).allowed).toBe(false)
          clock.set(nowMs)
        }
      }),
    )
  })

  it('a peek changes nothing, and says of the attempt what a decision says', () => {
    fc.assert(
      fc.property(
        scenarios,
        fc.array(fc.double({ min: 0, max: 3, noNaN: true })),
        (scenario, looks) => {
          const plain: Decision[] = []
          run(scenario, ({ decision }) => void plain.push(decision))
          const { rule, start, steps } = scenario
          const clock = manualClock(epochMs + start)
          const limiter = createLimiter({ rules: [ipRule(rule)], clock })
          const looked = steps.map(({ gap, cost }) => {
            const beforeMs = clock.monotonicMs()
            for (const share of looks) {
              clock.set(beforeMs + share * rule.window)
              limiter.peek(someone, { cost })
              limiter.peek({ ip: '198.51.100.1' }, { cost: 1 })
            }
            clock.set(beforeMs)
            clock.advance(gap * rule.window)
            const peeked = limiter.peek(someone, { cost })
            const decided = limiter.decide(someone, { cost })
            expect(peeked.allowed).toBe(decided.allowed)
            expect(peeked.verdicts[0]?.verdict).toBe(decided.verdicts[0]?.verdict)
            return decided
          })
          expect(looked).toEqual(plain)
        },
      ),
    )
  })

  it('the order of rules changes neither the answer nor any rule of it', () => {
    const rule = fc.record({
      key: fc.constantFrom('global' as const, 'ip' as const, 'session' as const),
      limit: fc.integer({ min: 0, max: 6 }),
      window: fc.constantFrom(700, 1_000, 3_000),
      strict: fc.boolean(),
      mode: fc.constantFrom(
        'enforce' as const,
        'enforce' as const,
        'shadow' as const,
        'disabled' as const,
      ),
    })
    const rules = fc
      .array(rule, { minLength: 2, maxLength: 5 })
      .map((list): RuleOptions[] => list.map((fields, index) => ({ name: `r${index}`, ...fields })))
    const order = fc.array(fc.nat(), { minLength: 5, maxLength: 5 })
    const steps = fc.array(
      fc.record({ gapMs: fc.nat(400), who: fc.nat(2), cost: fc.constantFrom(0, 1, 1, 2) }),
      { minLength: 5, maxLength: 40 },
    )
    fc.assert(
      fc.property(rules, order, steps, (list, ranks, taken) => {
        const shuffled = list
          .map((options, index) => ({ options, rank: ranks[index] ?? 0 }))
          .toSorted((a, b) => a.rank - b.rank)
          .map(({ options }) => options)
        expect(answersOf(shuffled, taken)).toEqual(answersOf(list, taken))
        expect(answersOf(list.toReversed(), taken)).toEqual(answersOf(list, taken))
      }),
    )
  })
})

describe('refunds and adjustments', () => {
  const steps = fc.array(
    fc.record({
      gap: gaps,
      cost: fc.integer({ min: 1, max: 4 }),
      /** Which of the attempts so far is refunded, if any. */
      refund: fc.option(fc.nat(8), { nil: null }),
      adjust: fc.constantFrom(0, 0, 0, -1, -5, 3),
    }),
    { minLength: 1, maxLength: 40 },
  )

  it('a refund leaves the state as if the attempt had never been', () => {
    fc.assert(
      fc.property(windows, steps, (window, taken) => {
        const { clock, limiter, usage } = limiterOf(10, window)
        const counted: { attempt: Attempt; index: number }[] = []
        for (const { gap, cost, refund } of taken) {
          clock.advance(Math.floor(gap * window))
          const attempt = limiter.attempt(someone, { cost }) as Attempt
          const index = Math.floor(clock.monotonicMs() / window)
          if (attempt.decision.allowed) counted.push({ attempt, index })
          if (refund !== null && refund < counted.length) {
            const [given] = counted.splice(refund, 1)
            void limiter.refund(given?.attempt as Attempt)
          }
          const now = Math.floor(clock.monotonicMs() / window)
          const intoMs = clock.monotonicMs() % window
          const sum = (of: number) =>
            counted.reduce(
              (total, entry) => total + (entry.index === of ? entry.attempt.question.cost : 0),
              0,
            )
          expect(usage()).toBe((sum(now) * window + sum(now - 1) * (window - intoMs)) / window)
        }
      }),
    )
  })

  it('a declined attempt is refunded nothing', () => {
    const { limiter, usage } = limiterOf(3, 60_000)
    void limiter.attempt(someone, { cost: 3 })
    const declined = limiter.attempt(someone, { cost: 2 }) as Attempt
    void limiter.refund(declined)
    expect(usage()).toBe(3)
  })

  it('usage never goes below 0, nor a refund give more than was taken', () => {
    fc.assert(
      fc.property(windows, steps, (window, taken) => {
        const { clock, limiter, usage } = limiterOf(10, window)
        const attempts: Attempt[] = []
        for (const { gap, cost, refund, adjust } of taken) {
          clock.advance(gap * window)
          const attempt = limiter.attempt(someone, { cost }) as Attempt
          if (attempt.decision.allowed) attempts.push(attempt)
          const before = usage()
          if (adjust !== 0) void limiter.adjust('ip', someone, adjust)
          const adjusted = usage()
          expect(adjusted).toBeGreaterThanOrEqual(Math.max(0, before + Math.min(0, adjust) - 1e-9))
          if (refund === null || refund >= attempts.length) continue
          const [given] = attempts.splice(refund, 1)
          void limiter.refund(given as Attempt)
          expect(usage()).toBeGreaterThanOrEqual(
            Math.max(0, adjusted - (given?.question.cost ?? 0) - 1e-9),
          )
          expect(usage()).toBeLessThanOrEqual(adjusted)
        }
      }),
    )
  })
})

describe('a clock that steps at will', () => {
  const stepsOf = fc.array(
    fc.record({
      stepMs: fc.oneof(
        fc.double({ min: -3_000, max: 3_000, noNaN: true }),
        fc.integer({ min: -(10 ** 12), max: 10 ** 12 }),
        fc.constantFrom(-2_000, -2_000.001, -1_000, 1_000, 2_000, 0),
      ),
      cost: fc.integer({ min: 1, max: 5 }),
    }),
    { minLength: 1, maxLength: 30 },
  )

  it('never makes it throw, nor answer what is no number, nor lock out for more than four windows', () => {
    fc.assert(
      fc.property(stepsOf, (taken) => {
        const clock = manualClock(epochMs)
        const limiter = createLimiter({ rules: [ipRule({ limit: 5, window: 1_000 })], clock })
        for (const { stepMs, cost } of taken) {
          clock.advance(stepMs)
          const decision = limiter.decide(someone, { cost })
          const { remaining, retryAfterMs, resetMs } = decision
          const usage = decision.verdicts[0]?.usage as number
          expect([usage, remaining, retryAfterMs, resetMs].every(Number.isFinite)).toBe(true)
          expect(usage).toBeGreaterThanOrEqual(0)
          expect(usage).toBeLessThanOrEqual(10)
          expect(retryAfterMs).toBeLessThanOrEqual(4_000)
          const nowMs = clock.monotonicMs()
          clock.set(nowMs + 4_000)
          expect(limiter.peek(someone, { cost: 5 }).allowed).toBe(true)
          clock.set(nowMs)
        }
      }),
      { numRuns: 300 },
    )
  })

  it('frees at most one limit with each step', () => {
    fc.assert(
      fc.property(stepsOf, (taken) => {
        const clock = manualClock(epochMs)
        const limiter = createLimiter({ rules: [ipRule({ limit: 5, window: 1_000 })], clock })
        for (const { stepMs } of taken) {
          clock.advance(stepMs)
          let passed = 0
          while (limiter.decide(someone).allowed) passed++
          expect(passed).toBeLessThanOrEqual(5)
        }
      }),
    )
  })
})
