/*
 * Real processes for tests: the built app on a free port, a real Prometheus that scrapes it. Each ends only
 * what it started, and what a test leaves behind ends with the test run.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Statistics } from '../../src/admin/statistics.js'

export const root = fileURLToPath(new URL('../../', import.meta.url))
export const cli = join(root, 'dist/cli/main.js')

const running = new Set<ChildProcess>()
const folders = new Set<string>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

export interface Finished {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

export interface RunningProcess {
  readonly child: ChildProcess
  stdout(): string
  stderr(): string
  /** Sends a signal and waits for the end. */
  end(signal?: NodeJS.Signals): Promise<Finished>
  readonly finished: Promise<Finished>
}

export function run(
  command: string,
  args: readonly string[],
  env: Record<string, string> = {},
  cwd: string = root,
): RunningProcess {
  const child = spawn(command, args, { cwd, env: { ...cleanEnvironment(), ...env } })
  running.add(child)
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const finished = once(child, 'close').then(([code, signal]) => {
    running.delete(child)
    return { code, signal, stdout, stderr }
  })
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    end(signal = 'SIGTERM') {
      child.kill(signal)
      return finished
    },
    finished,
  }
}

export interface StartedApp extends RunningProcess {
  /** Such as http://127.0.0.1:43210. */
  readonly url: string
  /** What /admin/stats says to who bears the token. */
  stats(): Promise<Statistics>
}

/** The built app on a free port, with a temporary database and an admin token unless `env` has others. */
export async function startApp(env: Record<string, string> = {}): Promise<StartedApp> {
  const settings = {
    PORT: '0',
    TALLYGATE_DATABASE: join(temporaryFolder(), 'tallygate.db'),
    TALLYGATE_ADMIN_TOKEN: randomBytes(16).toString('hex'),
    ...env,
  }
  const app = run(process.execPath, [cli, 'serve'], settings)
  const url = await firstMatch(app, /listens on (http:\S+)/)
  const headers = { authorization: `Bearer ${settings.TALLYGATE_ADMIN_TOKEN}` }
  return {
    ...app,
    url,
    async stats() {
      return (await (await fetch(`${url}/admin/stats`, { headers })).json()) as Statistics
    },
  }
}

export interface StartedPrometheus extends RunningProcess {
  readonly url: string
}

/** A Prometheus that scrapes `target` each second, as the job `tallygate`. */
export async function startPrometheus(program: string, target: string): Promise<StartedPrometheus> {
  const folder = temporaryFolder()
  const config = join(folder, 'prometheus.yml')
  writeFileSync(
    config,
    JSON.stringify({
      global: { scrape_interval: '1s', scrape_timeout: '1s' },
      scrape_configs: [
        { job_name: 'tallygate', static_configs: [{ targets: [new URL(target).host] }] },
      ],
    }),
  )
  const port = await freePort()
  const prometheus = run(program, [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ])
  const url = `http://127.0.0.1:${port}`
  await until(async () => (await fetch(`${url}/-/ready`)).ok, 'Prometheus to be ready')
  return { ...prometheus, url }
}

/** A folder that goes when the test run does. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tallygate-test-'))
  folders.add(folder)
  return folder
}

/** Asks again until it is so, for at most `limitMs`. */
export async function until(
  isSo: () => Promise<boolean>,
  what: string,
  limitMs = 15_000,
): Promise<void> {
  const endMs = Date.now() + limitMs
  let lastError: unknown
  while (Date.now() < endMs) {
    try {
      if (await isSo()) return
    } catch (error) {
      lastError = error
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`Waited ${limitMs} ms in vain for ${what}`, { cause: lastError })
}

async function firstMatch(started: RunningProcess, pattern: RegExp): Promise<string> {
  let finished: Finished | null = null
  void started.finished.then((end) => (finished = end))
  await until(async () => finished !== null || pattern.test(started.stdout()), String(pattern))
  const match = pattern.exec(started.stdout())?.[1]
  if (match === undefined) throw new Error(`It ended instead: ${JSON.stringify(finished)}`)
  return match
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** This environment less what would configure the app. */
function cleanEnvironment(): Record<string, string> {
  const ours = /^(TALLYGATE_|SESSION_|TRUST_PROXY$|PORT$|HOST$|NODE_ENV$|LOG_LEVEL$|VITEST)/
  const entries = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !ours.test(entry[0]),
  )
  return Object.fromEntries(entries)
}
