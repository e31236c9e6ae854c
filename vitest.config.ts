import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two cores, and suites that start real processes: more files at once only disturb each other.
    maxWorkers: 2,
  },
})
