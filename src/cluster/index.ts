/*
 * `tallygate/cluster`: makes the gates in the workers of node:cluster answer as one.
 *
 * @example
 * import cluster from 'node:cluster'
 * import { collect } from 'tallygate/cluster'
 *
 * if (cluster.isPrimary) {
 *   collect()
 *   for (let count = 0; count < 4; count++) cluster.fork()
 * } else {
 *   await import('./app.js')
 * }
 */
import cluster, { type Worker } from 'node:cluster'
import { TallygateError } from '../core/errors.js'
import { Collector, type Peer } from './collector.js'
import { collectorVariable, enveloped, workerMessage } from './messages.js'

/**
 * To be called in the primary, before it forks: workers forked from then on answer `/metrics` and
 * `/admin/stats` for all of them, whichever is asked. Costs nothing until one is; calling it again changes
 * nothing.
 *
 * @throws TallygateError in a worker.
 */
export function collect(): void {
  if (!cluster.isPrimary) {
    throw new TallygateError(
      'TALLYGATE_OPTION',
      'Cannot collect: collect() must be called in the primary of node:cluster, before it forks: ' +
        'received a call in a worker',
    )
  }
  const own = String(process.pid)
  if (process.env[collectorVariable] === own) return
  // Workers inherit it: so a gate knows from its first moment on that it is one of several.
  process.env[collectorVariable] = own
  const collector = new Collector()
  cluster.on('message', (worker, value: unknown) => {
    const message = workerMessage(value)
    if (message !== null) collector.receive(peerOf(worker), message)
  })
  // Comes after the last message; `exit` may come before.
  cluster.on('disconnect', ({ id }) => collector.gone(id))
}

function peerOf(worker: Worker): Peer {
  return {
    id: worker.id,
    send(message) {
      // One that is just ending cannot be reached: that it has ended says the next event.
      if (worker.isConnected()) worker.send(enveloped(message), ignored)
    },
  }
}

function ignored(): void {
  // An error of sending, which else would be thrown at the worker object.
}
