/*
 * `tallygate serve`: runs the bundled app until it is told to stop.
 */
import type { Command } from 'commander'
import type { RunningApp } from '../app/main.js'

export function addServe(program: Command): void {
  program
    .command('serve')
    .description('Serve the bundled app: limits, metrics, statistics, and routes to try them on.')
    .addHelpText('after', settingsHelp)
    .action(async () => {
      // Loaded only here: --help and check answer without Express and SQLite.
      const { startApp } = await import('../app/main.js')
      const starting = startApp(process.env, (line) => process.stdout.write(`${line}\n`))
      // From the first moment on: a signal during the start ends the app as soon as it can end well.
      for (const signal of ['SIGTERM', 'SIGINT'] as const) {
        process.on(signal, () => void endWell(starting))
      }
      await starting
    })
}

async function endWell(starting: Promise<RunningApp>): Promise<void> {
  // A start that failed is reported where it is awaited, and leaves nothing to end.
  const running = await starting.catch(() => null)
  if (running === null) return
  await running.close()
  process.exit(0)
}

const settingsHelp = `
Settings, by environment variable:
  PORT                     port to listen on, 0 for a free one (3000)
  HOST                     address to listen on (127.0.0.1)
  TALLYGATE_CONFIG         file with the rules (tallygate.yml here, else the one that ships)
  TALLYGATE_DATABASE       SQLite file for counts, sessions, pages (data/tallygate.db)
  TALLYGATE_ADMIN_TOKEN    opens /admin/stats; at least 16 characters
  TALLYGATE_METRICS_TOKEN  asked of scrapers where set; at least 16 characters
  SESSION_SECRET           signs session cookies; needed in production
  SESSION_MAX_AGE          how long a session lives (1d)
  TRUST_PROXY              number of proxies in front, or their addresses (none)
  TALLYGATE_URL_ALLOW      what /api/parse may fetch beside public pages: 127.0.0.1/32:8080 (none)
  LOG_LEVEL                fatal, error, warn, info, debug, trace, silent (info)
  NODE_ENV                 production: secrets are never made up`
