/*
 * The way from a gate in a worker to the primary that has called `collect()`.
 */
import cluster from 'node:cluster'
import {
  collectorVariable,
  enveloped,
  primaryMessage,
  type PrimaryMessage,
  type WorkerMessage,
} from './messages.js'

export interface Channel {
  /** Ends once the message is on its way, or cannot be sent any more. */
  send(message: WorkerMessage): Promise<void>
  /** Calls back with each message of the primary, until `stop` is called. */
  listen(callback: (message: PrimaryMessage) => void): () => void
}

/** null where this process is no worker of a primary that collects. */
export function findCollector(): Channel | null {
  const { worker } = cluster
  // The variable goes on to whatever a worker starts: it must be of our own primary.
  if (worker === undefined || process.env[collectorVariable] !== String(process.ppid)) return null
  return {
    send: (message) =>
      new Promise((resolve) => {
        if (process.send === undefined || !process.connected) return resolve()
        process.send(enveloped(message), undefined, undefined, () => resolve())
      }),
    listen(callback) {
      const hear = (value: unknown) => {
        const message = primaryMessage(value)
        if (message !== null) callback(message)
      }
      // Of the worker object: a listener of the process would keep it alive.
      worker.on('message', hear)
      return () => worker.off('message', hear)
    },
  }
}
