/*
 * Limits around functions rather than routes: `run` for work that belongs to a request, `guard` for a
 * function by itself. The rules are asked before the work begins and in one step, so calls made in parallel
 * cannot slip past. A declined call rejects with `LimitExceeded`, and the work is not begun.
 */
import { TallygateError } from '../core/errors.js'
import type { CompiledRule } from '../core/rule.js'
import type { Attempt, RuleLimiter } from '../limiter/limiter.js'
import { longestWait, type Answers } from './answers.js'
import type { HttpRequest } from './http.js'
import { LimitExceeded } from './limit-exceeded.js'
import { detailOf } from './problem.js'
import type { RequestAttempts } from './request-attempts.js'
import type { RequestOpener } from './request-opener.js'
import type { RequestRecord, RequestRecords } from './request-record.js'

export interface FunctionParts {
  readonly limiter: RuleLimiter
  readonly records: RequestRecords
  readonly opener: RequestOpener
  readonly attempts: RequestAttempts
  readonly answers: Answers
}

export class FunctionLimits {
  readonly #parts: FunctionParts

  constructor(parts: FunctionParts) {
    this.#parts = parts
  }

  /** @throws TallygateError where no rule is for that function. @param act what could not be done. */
  check(act: string, name: string): void {
    const { limiter } = this.#parts
    if (limiter.hasFunction(name)) return
    const names = limiter.rules.flatMap((rule) => rule.function ?? [])
    throw new TallygateError(
      'TALLYGATE_RULE_NAME',
      `Cannot ${act} '${name}': it must be the function of a rule, ` +
        (names.length === 0 ? 'and no rule has one' : `such as ${names.join(', ')}`),
    )
  }

  /** The same function, asking the rules first. Its attempts belong to no request. */
  guard<Given extends unknown[], Result>(
    name: string,
    work: (...given: Given) => Result,
  ): (...given: Given) => Promise<Awaited<Result>> {
    this.check('guard', name)
    const { limiter } = this.#parts
    const inNeed = limiter.rules.find((rule) => rule.function === name && needsRequest(rule))
    if (inNeed !== undefined) {
      throw new TallygateError(
        'TALLYGATE_RULE_NAME',
        `Cannot guard '${name}': its rule '${inNeed.name}' asks about a request ` +
          `(${whyOf(inNeed)}), and a guarded function has none: use gate.run`,
      )
    }
    const asked = { function: name }
    return async function guarded(this: unknown, ...given: Given): Promise<Awaited<Result>> {
      const attempt = await limiter.attempt({}, asked)
      if (!attempt.decision.allowed) throw exceeded(attempt, attempt.decision.retryAfterMs)
      return await work.apply(this, given)
    }
  }

  /** Does the work for a request, which counts as declined where the rules decline. */
  async run<Result>(
    name: string,
    request: HttpRequest,
    work: () => Result,
  ): Promise<Awaited<Result>> {
    this.check('run', name)
    const { records, opener, attempts } = this.#parts
    const record = opener.recordOfAlone(request)
    try {
      if (record.failure !== undefined) throw record.failure
      // Awaited only where it is a promise: else the rules are asked before `run` returns.
      const isExempt = record.exempt instanceof Promise ? await record.exempt : record.exempt
      if (!isExempt) {
        await this.#conclude(record, await attempts.ask(record, { function: name }))
      }
    } finally {
      // A client may have gone before the first attempt, and no event will come any more.
      if (record.response !== null) records.countIfOver(record.response)
    }
    return await work()
  }

  async #conclude(record: RequestRecord, attempt: Attempt): Promise<void> {
    const { attempts, answers } = this.#parts
    if (attempt.decision.allowed) return attempts.allow(record, attempt)
    const reviewed = await attempts.decline(record, attempt)
    const waitMs = longestWait(attempt, reviewed)
    throw exceeded(attempt, waitMs, answers.fieldsOf([...reviewed, attempt]))
  }
}

function exceeded(
  attempt: Attempt,
  retryAfterMs: number,
  fields?: Record<string, string>,
): LimitExceeded {
  const detail = detailOf(attempt, retryAfterMs)
  return new LimitExceeded(detail, attempt.decision, retryAfterMs, fields)
}

/** Whether a rule cannot tell whom to count, or how much, without a request. */
function needsRequest({ keyParts, match, plans }: CompiledRule): boolean {
  return keyParts.length > 0 || match !== null || plans !== null
}

function whyOf({ key, match, plans }: CompiledRule): string {
  if (key !== 'global') return `key ${key}`
  if (match !== null) return 'match'
  return plans === null ? '' : 'limit is a function'
}
