import { defineConfig } from 'vitest/config'
import { ClosingLine } from './test/support/closing-line.js'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two cores, and suites that start real processes: more files at once only disturb each other.
    maxWorkers: 2,
    reporters: ['default', new ClosingLine()],
  },
})
