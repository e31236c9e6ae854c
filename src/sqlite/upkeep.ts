/*
 * What is kept in rows needs something while nobody asks for it: what waits is written each second, what
 * has expired is deleted twice a minute, beginning with the start. The timer does not keep the process alive.
 */

export interface Kept {
  /** Writes what waits; reports its own failures. */
  flush(): Promise<void>
  /** Deletes what has expired. */
  sweep(): Promise<unknown>
}

const tickMs = 1_000
const sweepEveryTicks = 30

/**
 * @param onFailure told of each sweep that failed; it is tried again soon.
 * @returns the timer, to be cleared at the end.
 */
export function startUpkeep(kept: Kept, onFailure: (error: unknown) => void): NodeJS.Timeout {
  let isSweeping = false
  const sweep = async () => {
    // Millions of rows may take longer than until the next.
    if (isSweeping) return
    isSweeping = true
    try {
      await kept.sweep()
    } catch (error) {
      onFailure(error)
    } finally {
      isSweeping = false
    }
  }
  void sweep()
  let tick = 0
  return setInterval(() => {
    if (++tick % sweepEveryTicks === 0) void sweep()
    else void kept.flush()
  }, tickMs).unref()
}
