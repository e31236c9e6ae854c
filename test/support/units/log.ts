/*
 * A logger that keeps what it is told, for tests of what is said and how often.
 */
import type { Logger } from '../../../src/core/logger.js'

export interface LogLine {
  level: keyof Logger
  fields: Record<string, unknown>
  message: string
}

export function collectingLogger(): { logger: Logger; lines: LogLine[] } {
  const lines: LogLine[] = []
  const at = (level: keyof Logger) => (fields: object, message: string) =>
    void lines.push({ level, fields: { ...fields }, message })
  return { logger: { info: at('info'), warn: at('warn'), error: at('error') }, lines }
}
