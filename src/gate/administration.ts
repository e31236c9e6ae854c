/*
 * What of a gate is for those who run it: the statistics, the admin routes, changes of rules while it runs.
 */
import { LiveChanges } from '../admin/live-changes.js'
import { createAdmin } from '../admin/routes.js'
import { ownFigures, type Figures } from '../admin/figures.js'
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
  /** Of all workers of the cluster; null where this process answers for itself. */
  clusterFigures(this: void): Promise<Figures | null>
}

export interface Administration {
  readonly handler: Handler
  readonly changes: LiveChanges
  stats(this: void): Promise<Statistics>
  /** Requests to the admin routes that carried a wrong token. */
  wrongTokenCount(this: void): number
}

export function createAdministration(parts: AdministrationParts): Administration {
  const { options, limiter, counting, calendar, clock, logger, clusterFigures } = parts
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
  const { archive } = tally
  const stats = async () => {
    const figures = (await clusterFigures()) ?? ownFigures(shown)
    return statistics(figures, { limiter, slots, calendar, archive })
  }
  let wrongTokenCount = 0
  const handler = createAdmin({
    ...shown,
    token: options.adminToken,
    exempt: options.exempt,
    changes,
    stats,
    logger,
    onWrongToken: () => void wrongTokenCount++,
  })
  return {
    handler: handler as Handler,
    changes,
    stats,
    wrongTokenCount: () => wrongTokenCount,
  }
}
