/*
 * What does keeping counts in SQLite cost the requests? The main thread's time for one flush of the tallies,
 * there and back, while the database's own thread writes to a disk that syncs, moves its log and is disturbed
 * by another writer; and the slowest answers of a server whose database is well, locked, and gone.
 *
 *   npx tsc -p tsconfig.bench.json && node build/bench/flush.js [--quick] [--json]
 *
 * The second needs wrk and taskset; without them it is left out.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import Sqlite from 'better-sqlite3'
import { childArguments } from './support/child.js'
import { isQuick, printFigures, shownCount, type Figure } from './support/figure.js'
import { missingPrograms } from './support/programs.js'
import { serverOf, type ServerName } from './support/http-servers.js'
import { quantile } from './support/statistics.js'

const run = promisify(execFile)
/** In the working directory: a temporary folder may lie in memory, which syncs for nothing. */
const folder = mkdtempSync(join(process.cwd(), 'bench-database-'))
const flushCount = isQuick ? 200 : 3_000
const loadSeconds = isQuick ? 1 : 8

const asked = childArguments()
if (asked === null) await main()
else serve(asked[1] ?? '')

async function main(): Promise<void> {
  try {
    const figures = [await flushes()]
    const missing = await missingPrograms(['wrk', 'taskset'])
    if (missing.length === 0) figures.push(await answers())
    else process.stderr.write(`bench: answers left out: ${missing.join(' and ')} not found\n`)
    await printFigures(figures)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What ships, as an application loads it. */
async function partsOfGate(path: string, ruleCount: number) {
  const at = (name: string) => new URL(`../../dist/${name}`, import.meta.url).href
  const { createGate } = (await import(at('gate/gate.js'))) as {
    createGate: typeof import('../src/gate/gate.js').createGate
  }
  return createGate({
    database: path,
    logger: { info() {}, warn() {}, error() {} },
    rules: Array.from({ length: ruleCount }, (_, index) => ({
      name: `rule-${index}`,
      key: 'ip' as const,
      limit: 1_000_000,
      window: '1m' as const,
    })),
  })
}

async function flushes(): Promise<Figure> {
  const rows: string[][] = []
  for (const [ruleCount, isDisturbed] of [
    [4, false],
    [4, true],
    [50, false],
  ] as const) {
    const path = join(folder, `flush-${ruleCount}-${isDisturbed}.db`)
    const gate = await partsOfGate(path, ruleCount)
    const other = isDisturbed ? new Sqlite(path, { timeout: 0 }) : null
    const costsUs: number[] = []
    for (let turn = 0; turn < flushCount; turn++) {
      for (let attempt = 0; attempt < 20; attempt++) {
        await gate.limiter.decide({ ip: `192.0.2.${attempt}` })
      }
      // Every fifth flush meets a lock.
      const isLocked = other !== null && turn % 5 === 0
      if (isLocked) other.exec('BEGIN IMMEDIATE')
      costsUs.push(await costUsOf(() => gate.flush()))
      if (isLocked) other.exec('COMMIT')
    }
    other?.close()
    await gate.close()
    rows.push([
      `${ruleCount} rules${isDisturbed ? ', every fifth meets a lock' : ''}`,
      quantile(costsUs, 0.5).toFixed(0),
      quantile(costsUs, 0.99).toFixed(0),
      Math.max(...costsUs).toFixed(0),
    ])
  }
  return {
    title: 'A flush of the tallies, on the main thread',
    columns: ['database', 'median µs', 'p99', 'most'],
    rows,
    notes: [
      `${shownCount(flushCount)} flushes of 20 attempts each, file and log on a disk that syncs; time in which the main thread was active, from handing over to having the answer (\`performance.eventLoopUtilization\`). Above the bar of 50 µs are collections and the noise of the machine.`,
    ],
  }
}

/** Time in which this thread does something until the work is done, waiting left out. */
async function costUsOf(work: () => Promise<void>): Promise<number> {
  // In a turn of its own: what ended before is not counted.
  await new Promise((resolve) => setTimeout(resolve, 1))
  const before = performance.eventLoopUtilization()
  await work()
  return performance.eventLoopUtilization(before).active * 1_000
}

async function answers(): Promise<Figure> {
  const rows: string[][] = []
  for (const state of ['well', 'locked by another process', 'removed under the app'] as const) {
    const path = join(folder, `${state.replaceAll(' ', '-')}.db`)
    const { child, url } = await start(path)
    await load(url, 2)
    let other: Sqlite.Database | null = null
    if (state === 'locked by another process') {
      other = new Sqlite(path)
      other.exec('BEGIN IMMEDIATE')
    }
    if (state === 'removed under the app') {
      for (const suffix of ['', '-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true })
    }
    const { p50Ms, p99Ms, maxMs, failed } = await load(url, loadSeconds)
    other?.close()
    rows.push([state, p50Ms, p99Ms, maxMs, failed])
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  return {
    title: 'Answers while the database is well, locked, gone',
    columns: ['database', 'median', 'p99', 'most', 'not 2xx'],
    rows,
    notes: [
      `The app with four rules of the HTTP benchmark, ${loadSeconds} s of wrk with 32 connections from the other core, at full load; the noise of such a run is as large as the differences.`,
    ],
  }
}

async function start(path: string): Promise<{ child: ChildProcess; url: string }> {
  const script = fileURLToPath(import.meta.url)
  const child = spawn('taskset', ['-c', '0', process.execPath, script, '--child', 'serve', path], {
    stdio: ['ignore', 'inherit', 'ignore', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  const [port] = (await once(child, 'message')) as [number]
  return { child, url: `http://127.0.0.1:${port}/` }
}

function serve(path: string): void {
  const name: ServerName = 'tallygate'
  const server = serverOf(name, path).listen(0, '127.0.0.1', () => {
    const address = server.address()
    process.send?.(typeof address === 'object' ? address?.port : null)
  })
}

async function load(url: string, seconds: number) {
  const options = ['-t', '1', '-c', '32', '--latency', '-d', `${seconds}s`]
  const { stdout } = await run('taskset', ['-c', '1', 'wrk', ...options, url])
  const found = (pattern: RegExp) => pattern.exec(stdout)?.[1] ?? '0'
  return {
    p50Ms: found(/50%\s+(\S+)/),
    p99Ms: found(/99%\s+(\S+)/),
    maxMs: found(/Latency\s+\S+\s+\S+\s+(\S+)/),
    failed: found(/Non-2xx or 3xx responses: (\d+)/),
  }
}
