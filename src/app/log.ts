/*
 * The log of the bundled app, on standard error: JSON lines for machines, and where a person watches, the
 * sentence alone.
 */
import { pino, type Logger } from 'pino'

export function createLog(level: string): Logger {
  const destination = process.stderr.isTTY
    ? { write: (line: string) => void process.stderr.write(`${inWords(line)}\n`) }
    : pino.destination(2)
  return pino({ name: 'tallygate', level }, destination)
}

function inWords(line: string): string {
  const entry = JSON.parse(line) as { level: number; msg?: string; err?: { message?: string } }
  const cause = entry.err?.message === undefined ? '' : `: ${entry.err.message}`
  return `${pino.levels.labels[entry.level]}: ${entry.msg ?? ''}${cause}`
}
