/*
 * What passes between the primary and the gates of its workers, beside whatever else an application sends
 * there: each message says whose it is and of which version, and others are passed over.
 */
import type { Lasting, Merged, Passing } from './report.js'

/** Two versions of this package in one cluster do not take each other's reports for their own. */
export const protocolVersion = 1

/** Set by the primary before it forks, to its process id, so that gates know at once whether to ask it. */
export const collectorVariable = 'TALLYGATE_COLLECTOR'

export type WorkerMessage =
  /** A gate begins; those of all workers with the same identity are one. */
  | { readonly type: 'open'; readonly gate: string; readonly identity: string }
  /** With `passing` where it answers a `tell`. */
  | {
      readonly type: 'report'
      readonly gate: string
      readonly lasting: Lasting
      readonly passing: Passing | null
    }
  /** Asks for what all workers come to. */
  | { readonly type: 'ask'; readonly gate: string; readonly question: number }
  | { readonly type: 'close'; readonly gate: string; readonly lasting: Lasting }

export type PrimaryMessage =
  /** Asks for a report. */
  | { readonly type: 'tell'; readonly gate: string }
  | {
      readonly type: 'answer'
      readonly gate: string
      readonly question: number
      readonly merged: Merged
    }

/** As it is sent. */
export type Enveloped<Message> = Message & { readonly tallygate: typeof protocolVersion }

export function enveloped<Message extends object>(message: Message): Enveloped<Message> {
  return { tallygate: protocolVersion, ...message }
}

/** A message of a gate; null where it is somebody else's. */
export function workerMessage(value: unknown): WorkerMessage | null {
  return isOurs(value, ['open', 'report', 'ask', 'close']) ? (value as WorkerMessage) : null
}

/** A message of the primary; null where it is somebody else's. */
export function primaryMessage(value: unknown): PrimaryMessage | null {
  return isOurs(value, ['tell', 'answer']) ? (value as PrimaryMessage) : null
}

function isOurs(value: unknown, types: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { tallygate, type, gate } = value as Record<string, unknown>
  return tallygate === protocolVersion && types.includes(type as string) && typeof gate === 'string'
}
