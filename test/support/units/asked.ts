/*
 * A service of the database as another thread has it, without the thread: each call answers with a promise.
 */
import type { Asked } from '../../../src/sqlite/asked.js'

type Methods<Service> = { [Name in keyof Service]: (...args: never[]) => unknown }

export function askedOf<Service extends Methods<Service>>(
  service: Service,
  names: readonly (keyof Service)[],
): Asked<Service> {
  const calls = names.map((name) => [
    name,
    async (...args: never[]) => service[name].apply(service, args),
  ])
  return Object.fromEntries(calls) as Asked<Service>
}
