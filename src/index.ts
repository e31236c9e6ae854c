/*
 * `tallygate`: a rate limiter for Express that shows its work.
 *
 * @example
 * const gate = tallygate({ config: 'tallygate.yml', database: 'data/tallygate.db' })
 * app.get('/metrics', gate.metrics)
 * app.use(gate.middleware)
 */
import type { Gate } from './gate/gate-api.js'
import { createGate } from './gate/gate.js'
import type { GateOptions } from './gate/options.js'

/**
 * Makes a gate: the limiter for Express, with its counts, metrics and statistics.
 *
 * @throws TallygateError naming what cannot be used, what was received and what would be right.
 */
export function tallygate(options: GateOptions): Gate {
  return createGate(options)
}

export { TallygateError } from './core/errors.js'
export { LimitExceeded } from './express/limit-exceeded.js'
export type { ErrorCode } from './core/errors.js'
export type { Decision, Mode, Outcome, RuleVerdict, Verdict } from './core/decision.js'
export type { Logger } from './core/logger.js'
export type { Clock } from './core/clock.js'
export type { Facts } from './core/facts.js'
export type { CandidateOptions, RuleOptions } from './core/rule-options.js'
export type { RuleStatistics } from './admin/rule-statistics.js'
export type { Statistics } from './admin/statistics.js'
export type { Count } from './tally/large-counts.js'
export type { WarningCode } from './core/warnings.js'
export type { ExemptOptions, Skip } from './express/exemption.js'
export type { CostFunction, DeclineHandler, Handler } from './express/http.js'
export type { Gate } from './gate/gate-api.js'
export type { GateOptions } from './gate/options.js'
