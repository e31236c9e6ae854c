/*
 * What of a gate is for those who run it: the statistics, the admin routes, changes of rules while it runs.
 */
import { LiveChanges } from '../admin/live-changes.js'
import { createAdmin } from '../admin/routes.js'
import { statistics, type Statistics } from '../admin/statistics.js'
import type { Clock } from '../core/clock.js'
import type { Logger } from '../core/logger.js'
import type { Handler } from '../express/http.js'
import type { RuleLimiter } from '../limiter/limiter.js'
import type { Calendar } from '../tally/calendar.js'
import type { Counting } from './counting.js'
import type { CheckedOptions } from './options.js'

export interface AdministrationParts {
  readonly options: CheckedOptions
  readonly limiter: RuleLimiter
  readonly counting: Counting
  readonly calendar: Calendar
  readonly clock: Clock
  readonly logger: Logger
}

export interface Administration {
  readonly handler: Handler
  readonly changes: LiveChanges
  stats(this: void): Statistics
  /** Requests to the admin routes that carried a wrong token. */
  wrongTokenCount(this: void): number
}

export function createAdministration(parts: AdministrationParts): Administration {
  const { options, limiter, counting, calendar, clock, logger } = parts
  const { tally, slots, recorder, database } = counting
  const kept =
    database === null
      ? null
      : {
          rows: database.thread.service('ruleChanges', ['since', 'write', 'audit']),
          stored: database.overrides,
        }
  const changes = new LiveChanges({ limiter, clock, logger, kept })
  const shown = { limiter, tally, slots, recorder, calendar, clock }
  let wrongTokenCount = 0
  const handler = createAdmin({
    ...shown,
    token: options.adminToken,
    exempt: options.exempt,
    changes,
    logger,
    onWrongToken: () => void wrongTokenCount++,
  })
  return {
    handler: handler as Handler,
    changes,
    stats: () => statistics(shown),
    wrongTokenCount: () => wrongTokenCount,
  }
}
