/*
 * Counts collections of garbage, to show that work allocates nothing: heap growth hides what was collected
 * in between, the number of young collections does not.
 */
import { constants, PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'

/** Young collections while `work` runs; those the observer still has in hand are waited for. */
export async function collectionsIn(work: () => void): Promise<number> {
  let count = 0
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { detail } = entry as PerformanceEntry & { detail: { kind: number } }
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MINOR) count++
    }
  })
  observer.observe({ entryTypes: ['gc'] })
  work()
  await wait(20)
  observer.disconnect()
  return count
}
