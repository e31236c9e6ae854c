/*
 * Finds gates that are made while requests are answered: each would count from 0, and nothing would be
 * limited. The server remembers when the first gate on it was asked; a gate made after that is late. One
 * or a few of them may be meant, so it takes ten within a minute. It hangs on the server under a symbol
 * that all copies of this package share, and is looked at with the first request of each gate only.
 */
import type { IncomingMessage } from 'node:http'

const lateGateCount = 10
const spanMs = 60_000

interface Mark {
  readonly firstAskedMs: number
  spanStartMs: number
  lateCount: number
  isSaid: boolean
}

const markKey = Symbol.for('tallygate.gates')

/**
 * To be asked with a gate's first request.
 *
 * @param createdMs when the gate was made, by the clock of `nowMs`.
 * @returns whether this gate is the one that makes it too many; once for each server.
 */
export function isOneTooMany(request: IncomingMessage, createdMs: number, nowMs: number): boolean {
  const { server } = request.socket as { server?: { [markKey]?: Mark } | null }
  // A socket that came from no server has none, or null.
  if (server === undefined || server === null) return false
  const mark = (server[markKey] ??= {
    firstAskedMs: nowMs,
    spanStartMs: nowMs,
    lateCount: 0,
    isSaid: false,
  })
  if (mark.isSaid || createdMs <= mark.firstAskedMs) return false
  if (nowMs - mark.spanStartMs >= spanMs) {
    mark.spanStartMs = nowMs
    mark.lateCount = 0
  }
  mark.isSaid = ++mark.lateCount >= lateGateCount
  return mark.isSaid
}
