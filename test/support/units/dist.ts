/*
 * The compiled package, for tests that need other processes: Node runs no TypeScript. `npm test` compiles
 * first; whoever runs vitest alone is told to.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The address of a compiled file, such as `limiter/index.js`. */
export function distUrl(path: string): string {
  const url = new URL(`../../../dist/${path}`, import.meta.url)
  if (!existsSync(fileURLToPath(url))) throw new Error(`dist/${path} is missing: npm run build`)
  return url.href
}

export interface Ended {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a module given as text in a process of its own. */
export function runModule(source: string, args: readonly string[] = []): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', source, ...args], {
      cwd: fileURLToPath(new URL('../../..', import.meta.url)),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.on('error', reject)
    child.on('close', (status) => resolve({ status, stdout, stderr }))
  })
}
