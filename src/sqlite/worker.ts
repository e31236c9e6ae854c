/*
 * The database's own thread: it takes calls one after the other and answers each, so that no lock, no slow
 * disk and no checkpoint ever holds the thread that serves requests.
 */
import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { DatabaseKeeper } from './keeper.js'
import type { Call, Fault, Order, Reply, ThreadData } from './messages.js'
import type { Arguments, Method, ServiceName } from './services.js'

const idleAfterMs = 2_000

const port = parentPort as MessagePort
const { path, options, changes, startedAtMs } = workerData as ThreadData
const keeper = new DatabaseKeeper(path, options, changes)
let tidying: NodeJS.Timeout | null = null
let writtenCount = 0

try {
  keeper.open(startedAtMs)
} catch {
  // The first call meets the same fault, and reports it.
}

port.on('message', (order: Order) => {
  if (order === 'patience') keeper.bePatient()
  else if (order === 'close') close()
  else serve(order)
})

function serve(call: Call): void {
  let reply: Reply
  try {
    // The asking side is checked against the services' types; what arrives is what it sent.
    const service = call.service as ServiceName
    const method = call.method as Method<ServiceName>
    const args = call.args as Arguments<ServiceName, Method<ServiceName>>
    const value = keeper.call(service, method, args, call.nowMs)
    reply = { id: call.id, value, changes: keeper.changes }
  } catch (error) {
    reply = { id: call.id, fault: faultOf(error), changes: keeper.changes }
  }
  port.postMessage(reply)
  tidy(false)
  awaitIdle()
}

/** Idle is where nobody writes: a tally without news is asked for each second all the same. */
function awaitIdle(): void {
  const before = writtenCount
  writtenCount = keeper.writtenCount()
  if (tidying !== null && writtenCount === before) return
  if (tidying !== null) clearTimeout(tidying)
  tidying = setTimeout(() => {
    tidying = null
    tidy(true)
  }, idleAfterMs).unref()
}

/** A log that cannot be moved now, because somebody reads or the disk is full, is moved later. */
function tidy(isIdle: boolean): void {
  try {
    keeper.tidy(isIdle)
  } catch {
    // The next write will meet the same fault and report it.
  }
}

function close(): void {
  if (tidying !== null) clearTimeout(tidying)
  keeper.close()
  port.close()
}

function faultOf(error: unknown): Fault {
  return { message: error instanceof Error ? error.message : String(error), code: codeOf(error) }
}

/** Of the error, or of what has caused it: SQLite's word tells more than ours. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const { code } = error as { code?: unknown }
  return codeOf(error.cause) ?? (typeof code === 'string' ? code : undefined)
}
