// The traces of an independent program through the packed limiter: `traces.mjs FILE…`. Prints how many
// steps agree, and ends with the first that does not.
import { readFileSync } from 'node:fs'
import { createLimiter } from 'tallygate/limiter'
import { manualClock } from 'tallygate/testing'

const someone = { ip: '203.0.113.7' }
let stepCount = 0
for (const file of process.argv.slice(2)) {
  for (const trace of JSON.parse(readFileSync(file, 'utf8'))) judge(trace)
}
process.stdout.write(String(stepCount))

function judge({ steps, minInterval = 0, ...rule }) {
  const clock = manualClock(steps[0].at)
  const special = minInterval === 0 ? {} : { minInterval }
  const rules = [{ name: 'ip', key: 'ip', ...rule, ...special }]
  const limiter = createLimiter({ rules, clock })
  for (const step of steps) {
    clock.set(step.at)
    const { allowed, remaining, retryAfterMs } = limiter.decide(someone, { cost: step.cost })
    // The wait of an exponential rule hangs on the last bit of its arithmetic.
    const wait = step.retryAfterMs ?? Infinity
    const slackMs = rule.algorithm === 'exponential' ? 1 : 0
    const isRight =
      allowed === step.allowed &&
      remaining === (step.remaining ?? remaining) &&
      (retryAfterMs === wait || Math.abs(retryAfterMs - wait) <= slackMs)
    if (!isRight) {
      throw new Error(JSON.stringify({ rule, step, allowed, remaining, retryAfterMs }))
    }
    stepCount++
  }
}
