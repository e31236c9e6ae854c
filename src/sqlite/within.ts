/*
 * Waits for an answer, but not for ever: what no request may wait for longer than that.
 */

/** The answer, or 'late' where it takes longer; it goes on all the same. Rejects as it does. */
export function within<T>(answer: Promise<T>, timeMs: number): Promise<T | 'late'> {
  let timer: NodeJS.Timeout | undefined
  const waiting = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), timeMs)
  })
  return Promise.race([answer, waiting]).finally(() => clearTimeout(timer))
}
