/*
 * Starts the bundled app and ends it. Everything that can be wrong is found before it says that it
 * listens; on SIGTERM or SIGINT it stops accepting, lets running requests end, writes what is counted, and
 * leaves with status 0.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { systemClock } from '../core/clock.js'
import { formatDuration } from '../core/duration.js'
import { TallygateError } from '../core/errors.js'
import type { Logger } from '../core/logger.js'
import { shownLimit } from '../core/plans.js'
import { createGate, type GateParts } from '../gate/gate.js'
import { version } from '../gate/version.js'
import type { CountingDatabase } from '../gate/counting.js'
import { startUpkeep } from '../sqlite/upkeep.js'
import type { PageFetcher } from '../url/fetch-page.js'
import { createApp } from './app.js'
import { createLog } from './log.js'
import { pathOfTarget } from './request-target.js'
import { readEnvironment, type Environment, type Settings } from './environment.js'

export interface RunningApp {
  /** Where it listens, such as http://127.0.0.1:3000. */
  readonly address: string
  /** Stops accepting, lets running requests end, writes what is counted. May be called twice. */
  close(): Promise<void>
}

/** How long running requests may take once the app is told to end. */
const graceMs = 3_000
const fetchGraceMs = 2_500

/**
 * @param print takes the lines that tell a person where to look.
 * @throws TallygateError with one line that names what to change; nothing is left running.
 */
export async function startApp(
  environment: Environment,
  print: (line: string) => void,
): Promise<RunningApp> {
  const settings = readEnvironment(environment)
  const logger = createLog(settings.logLevel)
  const gate = createGate({
    config: settings.configPath,
    database: settings.databasePath,
    adminToken: settings.adminToken,
    metricsToken: settings.metricsToken,
    clock: systemClock,
    logger,
  })
  const database = gate.database as CountingDatabase
  let isClosing = false
  try {
    const { app, sessions, pages, fetcher } = createApp({
      gate,
      database,
      settings,
      clock: systemClock,
      logger,
      isClosing: () => isClosing,
    })
    const server = createServer()
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      request.url = pathOfTarget(request.url ?? '/')
      app(request, response)
    }
    // By itself Node would answer an expectation that it does not know 417, past the gate.
    server.on('request', answer).on('checkExpectation', answer)
    // The thread of the database, which sessions and pages are asked of: no request waits that long for it.
    await pages.started()
    await listen(server, settings)
    const upkeep = [sessions, pages].map((kept) =>
      startUpkeep(kept, (error) => {
        logger.warn({ err: error }, 'expired rows could not be deleted; tried again soon')
      }),
    )
    const { port } = server.address() as AddressInfo
    const address = `http://${hostToShow(settings.host)}:${port}`
    warnAboutSettings(settings, logger)
    greet(address, settings, gate, print)
    let closing: Promise<void> | null = null
    const close = async () => {
      isClosing = true
      for (const timer of upkeep) clearInterval(timer)
      await endRequests(server, fetcher)
      database.thread.bePatient()
      await sessions.flush()
      await pages.flush()
      await gate.close()
      if (gate.persistenceFailure() === null) print('tallygate has stopped; every count is saved')
    }
    return { address, close: () => (closing ??= close()) }
  } catch (error) {
    await gate.close()
    throw error
  }
}

/** Whoever waits for a page is answered that there is none, before the connection would be cut. */
async function endRequests(server: Server, fetcher: PageFetcher): Promise<void> {
  const giveUp = setTimeout(() => void fetcher.close(), fetchGraceMs)
  await closeServer(server)
  clearTimeout(giveUp)
  await fetcher.close()
}

/** An address that listens everywhere is none to go to. */
function hostToShow(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

function listen(server: Server, { port, host }: Settings): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason = error.code === 'EADDRINUSE' ? 'the port is in use' : error.message
      const message = `Cannot listen on ${host}:${port}: ${reason}; set PORT or HOST to another`
      reject(new TallygateError('TALLYGATE_LISTEN', message, { cause: error }))
    })
    server.listen(port, host, () => resolve())
  })
}

/** Idle connections go at once, running requests get a while, and then the rest is cut. */
function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const idle = setInterval(() => server.closeIdleConnections(), 50)
    const cut = setTimeout(() => server.closeAllConnections(), graceMs)
    server.close(() => {
      clearInterval(idle)
      clearTimeout(cut)
      // The last 'close' events of responses come with the next turns of the loop.
      setImmediate(resolve)
    })
  })
}

function greet(
  address: string,
  settings: Settings,
  gate: GateParts,
  print: (line: string) => void,
): void {
  const limits = gate.limiter.rules.map(
    (rule) => `${rule.name} ${shownLimit(rule)}/${formatDuration(rule.windowMs)}`,
  )
  const isShown = settings.isAdminTokenRandom && process.stdout.isTTY
  const admin = isShown
    ? `for this run: curl -H 'Authorization: Bearer ${settings.adminToken}' ${address}/admin/stats`
    : settings.adminToken === undefined || settings.isAdminTokenRandom
      ? `${address}/admin/stats (set TALLYGATE_ADMIN_TOKEN to open it)`
      : `${address}/admin/stats (with your TALLYGATE_ADMIN_TOKEN)`
  print(`tallygate ${version} listens on ${address}`)
  print('')
  print(`  try it       ${address}/`)
  print(`  metrics      ${address}/metrics`)
  print(`  statistics   ${admin}`)
  print(`  limits       ${limits.join(', ')} (${settings.configPath})`)
  print(`  counts       ${gate.database?.thread.path}`)
  print('')
}

function warnAboutSettings(settings: Settings, logger: Logger): void {
  const { urlAllow } = settings
  if (urlAllow.length > 0) {
    logger.warn(
      { urlAllow },
      `TALLYGATE_URL_ALLOW lets anybody have pages fetched from ${urlAllow.join(', ')}`,
    )
  }
  if (settings.isSessionSecretRandom) {
    logger.warn({}, 'SESSION_SECRET is not set: sessions end with this run')
  }
  if (settings.isProduction && settings.trustProxy === false) {
    logger.warn(
      {},
      'TRUST_PROXY is not set: behind a proxy all clients share its address, ' +
        'and cookies go out without Secure unless the app itself speaks TLS',
    )
  }
}
