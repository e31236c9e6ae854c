/*
 * The part of pino's interface that tallygate calls. Any logger of that shape may be handed in.
 */

export interface Logger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}
