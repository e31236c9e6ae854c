/*
 * Ends a test run with one plain line, `N passed, N failed, N skipped`, that people and programs can read.
 * A file that could not be loaded counts as a failure.
 */
import type { Reporter, TestModule } from 'vitest/node'

export class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const counts = { passed: 0, failed: errors.length, skipped: 0, pending: 0 }
    for (const module of modules) {
      counts.failed += module.errors().length
      for (const test of module.children.allTests()) counts[test.result().state]++
    }
    const { passed, failed, skipped, pending } = counts
    const more = skipped + pending > 0 ? `, ${skipped + pending} skipped` : ''
    process.stdout.write(`\n${passed} passed, ${failed} failed${more}\n`)
  }
}
