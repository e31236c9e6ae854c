import { defineConfig } from 'vitest/config'
import { ClosingLine } from './test/support/closing-line.js'

/**
 * Sources under test are TypeScript, which a thread cannot load: those that start one take the built file,
 * as `npm test` makes it first.
 */
const builtWorker = {
  name: 'built-worker',
  transform(code: string, id: string) {
    return id.endsWith('src/sqlite/database-thread.ts')
      ? code.replace(`'./worker.js'`, `'../../dist/sqlite/worker.js'`)
      : null
  },
}

export default defineConfig({
  plugins: [{ ...builtWorker, enforce: 'pre' as const }],
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two cores, and suites that start real processes: more files at once only disturb each other.
    maxWorkers: 2,
    reporters: ['default', new ClosingLine()],
  },
})
