/*
 * Programs that some suites need beside Node. A suite whose tool is missing is skipped, loudly, with the
 * reason and how to get it; where CI=true a missing tool is a failure, so that nothing is skipped there.
 */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { describe, it } from 'vitest'

const packages = {
  prometheus: 'prometheus',
  promtool: 'prometheus',
  chromium: 'chromium',
  'redis-server': 'redis-server',
} as const

export type Tool = keyof typeof packages

/** The path of a program, or null where PATH has none of that name. */
export function findTool(tool: Tool): string | null {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, tool)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      continue
    }
  }
  return null
}

/** A suite that runs only where all its tools are there. */
export function describeWith(tools: readonly Tool[], title: string, suite: () => void): void {
  const missing = tools.filter((tool) => findTool(tool) === null)
  const names = [...new Set(missing.map((tool) => packages[tool]))].join(' ')
  const reason = `${missing.join(', ')} not on PATH: apt-get install ${names}`
  describeUnless(missing.length === 0 ? null : reason, title, suite)
}

/** A suite that is skipped for a reason, loudly; where CI=true the reason is a failure. */
export function describeUnless(reason: string | null, title: string, suite: () => void): void {
  if (reason === null) {
    describe(title, suite)
    return
  }
  if (process.env['CI'] === 'true') {
    describe(title, () => {
      it('finds its tools', () => {
        throw new Error(`Cannot run without a tool: ${reason}`)
      })
    })
    return
  }
  process.stderr.write(`\n  SKIPPED: ${title}: ${reason}\n`)
  describe.skip(`${title} (${reason})`, suite)
}
