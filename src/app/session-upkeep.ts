/*
 * What sessions need while nobody asks for them: what waits is written each second, expired rows are
 * deleted twice a minute, beginning with the start. Its timer does not keep the process alive.
 */
import type { Logger } from '../core/logger.js'
import type { SessionBuffer } from '../sqlite/session-buffer.js'

const tickMs = 1_000
const sweepEveryTicks = 30

/** @returns the timer, to be cleared at the end. */
export function startUpkeep(sessions: SessionBuffer, logger: Logger): NodeJS.Timeout {
  let isSweeping = false
  const sweep = async () => {
    // Millions of rows may take longer than until the next.
    if (isSweeping) return
    isSweeping = true
    try {
      await sessions.sweep()
    } catch (error) {
      logger.warn({ err: error }, 'expired sessions could not be deleted; tried again soon')
    } finally {
      isSweeping = false
    }
  }
  void sweep()
  let tick = 0
  return setInterval(() => {
    if (++tick % sweepEveryTicks === 0) void sweep()
    else void sessions.flush()
  }, tickMs).unref()
}
