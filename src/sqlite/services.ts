/*
 * What is kept in the database, each kind by a service of its own. Services run in the database's thread;
 * others ask for them by name, and get promises: see `database-thread`. What goes in and out must survive
 * the way between threads: plain objects, lists, numbers, texts, typed arrays. Every method answers at once,
 * and soon: large work is asked for in pieces, so that others get their turn.
 *
 * Adding one: a file with its statements, a row here.
 */
import type { OpenDatabase } from './database.js'
import { PageRows } from './pages.js'
import { RuleChangeRows } from './rule-changes.js'
import { SessionRows } from './sessions.js'
import { TallyRows } from './tally-rows.js'

export interface ServiceOptions {
  /** The rules whose verdicts are tallied, in the order of their slots. */
  readonly ruleNames: readonly string[]
}

export interface Services {
  readonly tallies: TallyRows
  readonly sessions: SessionRows
  readonly pages: PageRows
  readonly ruleChanges: RuleChangeRows
}

export type ServiceName = keyof Services
/** The names of a service's methods. */
export type Method<S extends ServiceName> = {
  [M in keyof Services[S]]: Services[S][M] extends (...args: never[]) => unknown ? M : never
}[keyof Services[S]]
type Function<S extends ServiceName, M extends Method<S>> = Services[S][M] extends (
  ...args: infer A
) => infer R
  ? { args: A; result: R }
  : never
export type Arguments<S extends ServiceName, M extends Method<S>> = Function<S, M>['args']
export type Result<S extends ServiceName, M extends Method<S>> = Function<S, M>['result']

export function createServices(database: OpenDatabase, options: ServiceOptions): Services {
  return {
    tallies: new TallyRows(database, options.ruleNames),
    sessions: new SessionRows(database),
    pages: new PageRows(database),
    ruleChanges: new RuleChangeRows(database),
  }
}
