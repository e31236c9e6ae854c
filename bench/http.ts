/*
 * What does the whole middleware cost a server? Express 5 with one route, bare and behind each limiter, over
 * loopback: the server on one core, the load, wrk, on the other. The bare server and a contender take turns in
 * short runs, so that a change of the machine's speed meets both; a ratio is taken within a pair.
 *
 *   npx tsc -p tsconfig.bench.json && node build/bench/http.js [--quick] [--json]
 *
 * Needs wrk and taskset; without them it says so and measures nothing.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { childArguments } from './support/child.js'
import { isQuick, printFigures, type Figure } from './support/figure.js'
import { serverOf, type ServerName } from './support/http-servers.js'
import { missingPrograms } from './support/programs.js'
import { median, quantile } from './support/statistics.js'

const run = promisify(execFile)
const pairCount = isQuick ? 2 : 20
const runSeconds = 1
const connectionCount = 32
const bare = 'bare Express 5'
const contenders = [
  'tallygate',
  'tallygate, headers off',
  'express-rate-limit',
  'express-rate-limit, four',
  'rate-limiter-flexible, four',
  'two plain headers',
  'tallygate, all declined',
  'express-rate-limit, all declined',
] satisfies ServerName[]

interface Server {
  readonly child: ChildProcess
  readonly url: string
}

interface Load {
  readonly perSecond: number
  /** Microseconds of processor time a request, user and system. */
  readonly cpuUs: number
}

const asked = childArguments()
if (asked === null) await main()
else serve(asked[0] as ServerName, asked[1] ?? '')

async function main(): Promise<void> {
  const missing = await missingPrograms(['wrk', 'taskset'])
  if (missing.length > 0) {
    process.stderr.write(`bench: http left out: ${missing.join(' and ')} not found\n`)
    return printFigures([])
  }
  await printFigures([await measure()])
}

/** In a child: serves until it is killed, and tells its processor time when asked. */
function serve(name: ServerName, database: string): void {
  const server = serverOf(name, database).listen(0, '127.0.0.1', () => {
    const address = server.address()
    process.send?.(typeof address === 'object' ? address?.port : null)
  })
  process.on('message', () => process.send?.(process.cpuUsage()))
}

async function measure(): Promise<Figure> {
  const folder = mkdtempSync(join(tmpdir(), 'tallygate-bench-'))
  const rows: string[][] = []
  try {
    for (const name of contenders) rows.push(await compare(name, folder))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return {
    title: 'The guarded app beside bare Express 5',
    columns: [
      'app',
      'requests/s ÷ bare',
      '95 % interval',
      'added µs of CPU a request',
      'quartiles',
    ],
    rows,
    notes: [
      `${pairCount} pairs of runs of ${runSeconds} s, bare and guarded in turn, each pair the other way round; wrk with ${connectionCount} connections on the other core; medians; the interval is of the median, by order statistics.`,
      'tallygate: `app.use(gate.middleware)` with four rules (global, address, session, address by the hour), metrics, tallies in SQLite flushed each second, both header fields.',
      'express-rate-limit: draft-8 fields; four: mounted four times. rate-limiter-flexible: four limiters asked in turn, two header fields.',
      'all declined: limit 0; the bare app answers 200 with 11 bytes.',
    ],
  }
}

async function compare(name: ServerName, folder: string): Promise<string[]> {
  const servers = [await start(bare, folder), await start(name, folder)] as const
  for (const server of servers) await load(server)
  const ratios: number[] = []
  const added: number[] = []
  for (let pair = 0; pair < pairCount; pair++) {
    const order = pair % 2 === 0 ? [0, 1] : [1, 0]
    const loads: Load[] = []
    for (const index of order) loads[index] = await load(servers[index] as Server)
    const [without, guarded] = loads as [Load, Load]
    ratios.push(guarded.perSecond / without.perSecond)
    added.push(guarded.cpuUs - without.cpuUs)
  }
  for (const { child } of servers) {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  const [low, high] = medianInterval(ratios)
  return [
    name,
    median(ratios).toFixed(3),
    `${low.toFixed(3)} – ${high.toFixed(3)}`,
    median(added).toFixed(1),
    `${quantile(added, 0.25).toFixed(1)} – ${quantile(added, 0.75).toFixed(1)}`,
  ]
}

async function start(name: ServerName, folder: string): Promise<Server> {
  const database = join(folder, `${name.replaceAll(/\W+/g, '-')}.db`)
  const script = fileURLToPath(import.meta.url)
  const child = spawn('taskset', ['-c', '0', process.execPath, script, '--child', name, database], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  const [port] = (await once(child, 'message')) as [number]
  return { child, url: `http://127.0.0.1:${port}/` }
}

async function load({ child, url }: Server): Promise<Load> {
  const before = await cpuUs(child)
  const threads = ['-t', '1', '-c', String(connectionCount), '-d', `${runSeconds}s`]
  const { stdout } = await run('taskset', ['-c', '1', 'wrk', ...threads, url])
  const perSecond = Number(/Requests\/sec:\s*([\d.]+)/.exec(stdout)?.[1])
  const requestCount = Number(/(\d+) requests in/.exec(stdout)?.[1])
  if (!(perSecond > 0 && requestCount > 0)) throw new Error(`wrk said: ${stdout}`)
  return { perSecond, cpuUs: ((await cpuUs(child)) - before) / requestCount }
}

async function cpuUs(child: ChildProcess): Promise<number> {
  child.send('usage')
  const [{ user, system }] = (await once(child, 'message')) as [NodeJS.CpuUsage]
  return user + system
}

/** The order statistics between which the median lies with 95 %, by the normal approximation. */
function medianInterval(values: readonly number[]): [number, number] {
  const sorted = values.toSorted((a, b) => a - b)
  const half = 0.98 * Math.sqrt(sorted.length)
  const low = Math.max(0, Math.floor(sorted.length / 2 - half))
  const high = Math.min(sorted.length - 1, Math.ceil(sorted.length / 2 + half) - 1)
  return [sorted[low] as number, sorted[high] as number]
}
