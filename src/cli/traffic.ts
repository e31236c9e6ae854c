/*
 * `tallygate traffic URL`: sends a bounded, varied load, shows how far it is where somebody watches, and
 * sums up. The load itself is in src/traffic; here are its flags, its end by signal, and its exit status.
 */
import type { Command } from 'commander'
import { systemClock } from '../core/clock.js'
import { parseDuration } from '../core/duration.js'
import { shown, TallygateError } from '../core/errors.js'
import { runTraffic } from '../traffic/traffic.js'
import type { Progress, TrafficReport } from '../traffic/report.js'
import { progressLine, summary } from './traffic-summary.js'

interface Flags {
  readonly duration: string
  readonly rate: string
  readonly seed?: string
  readonly allowRemote?: true
}

export function addTraffic(program: Command): void {
  program
    .command('traffic')
    .description('Send a bounded, varied load, so that something moves on the dashboards.')
    .argument('<url>', 'where the app is, such as http://127.0.0.1:3000')
    .option('--duration <span>', 'how long to send, 1s to 1h', '60s')
    .option('--rate <number>', 'mean requests a second, 1 to 500', '30')
    .option('--seed <number>', 'sends the mix of an earlier run again (default: a new one, shown)')
    .option('--allow-remote', 'let the app be on another machine; only on your own')
    .addHelpText('after', mixHelp)
    .action(async (url: string, flags: Flags, command: Command) => {
      try {
        await traffic(url, flags)
      } catch (error) {
        // Commander's way out of wrong usage: the line, a pointer to --help, and status 2.
        if (error instanceof TallygateError && error.code === 'TALLYGATE_OPTION') {
          command.error(error.message)
        }
        throw error
      }
    })
}

async function traffic(url: string, flags: Flags): Promise<void> {
  const stop = new AbortController()
  // Once: a second signal ends the process at once, as it does by default.
  const onSignal = () => stop.abort()
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  const { isTTY } = process.stderr
  let report: TrafficReport
  try {
    report = await runTraffic({
      url,
      clock: systemClock,
      durationMs: durationOf(flags.duration),
      rate: numberOf('rate', flags.rate),
      seed: flags.seed === undefined ? undefined : numberOf('seed', flags.seed),
      allowRemote: flags.allowRemote,
      signal: stop.signal,
      onProgress: isTTY ? showProgress : undefined,
    })
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
    if (isTTY) process.stderr.write('\r\u001b[K')
  }
  process.stdout.write(summary(report))
  if (report.stoppedBy === 'failures') process.exitCode = 1
}

function showProgress(progress: Progress): void {
  process.stderr.write(`\r${progressLine(progress)}\u001b[K`)
}

function durationOf(text: string): number {
  const spanMs = parseDuration(text)
  if (spanMs !== null && spanMs >= 1_000 && spanMs <= 3_600_000) return spanMs
  throw refused('duration must be a span from 1s to 1h, such as 30s or 5m', text)
}

/** Its range is for the load to judge. */
function numberOf(name: string, text: string): number {
  if (/^\d{1,12}(\.\d{1,6})?$/.test(text)) return Number(text)
  throw refused(`${name} must be a number`, text)
}

function refused(right: string, received: string): TallygateError {
  return new TallygateError(
    'TALLYGATE_OPTION',
    `Cannot send traffic: ${right}: received ${shown(received)}`,
  )
}

const mixHelp = `
Forty simulated clients, three of them heavy, ask for pages, pings, parsed addresses and paths that do
not exist; some keep a session. Every 10 to 15 seconds one of them sends a burst. Where clients are
counted apart, a minute of it passes at least three of the four limits that ship, and mostly all.

Each client has an address of its own, sent as X-Forwarded-For. An app that trusts no proxy sees one
address instead: start it with TRUST_PROXY=1 npm start to see the clients counted apart.

It goes to this machine only (127.0.0.0/8, ::1, localhost) unless --allow-remote is given, has at most 64
requests on their way, and ends by itself or with Ctrl-C, either way with a summary.
Exit status: 0 well, 1 the app does not answer, 2 wrong usage.`
