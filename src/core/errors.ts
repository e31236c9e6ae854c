/*
 * Every fault that tallygate reports by code, in one table. A message reads "what could not be done: what
 * would be right: received what (CODE)", and each code has a section of the same name in docs/errors.md;
 * a test holds the two together. Construction faults throw one of these; a declined request is no fault.
 */

export const errorCodes = {
  TALLYGATE_CONFIG_FILE: 'the configuration file cannot be read, or is not YAML',
  TALLYGATE_CONFIG_FIELD: 'a field of the configuration is unknown or has an impossible value',
  TALLYGATE_RULE_FIELD: 'a rule has a field that is unknown, or not for its algorithm',
  TALLYGATE_RULE_VALUE: 'a field of a rule has an impossible value',
  TALLYGATE_RULE_NAME: 'two rules have the same name, or a rule that was asked for does not exist',
  TALLYGATE_OPTION: 'an option in code is unknown or has an impossible value',
  TALLYGATE_ENVIRONMENT: 'an environment variable has an impossible value',
  TALLYGATE_SECRET: 'a secret is missing, too short or a placeholder',
  TALLYGATE_DATABASE: 'the database cannot be opened, written or understood',
  TALLYGATE_LISTEN: 'the server cannot listen at its address',
  TALLYGATE_UNREACHABLE: 'the app that traffic was to go to does not answer',
} as const

export type ErrorCode = keyof typeof errorCodes

export class TallygateError extends Error {
  override readonly name = 'TallygateError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, sentence: string, options?: ErrorOptions) {
    super(`${sentence} (${code})`, options)
    this.code = code
  }
}

/** How a value that was received is shown in a message: short, unambiguous, on one line. */
export function shown(value: unknown): string {
  const text =
    typeof value === 'number' || value === undefined || typeof value === 'bigint'
      ? String(value)
      : (jsonOf(value) ?? `a ${typeof value}`)
  return text.length > 80 ? `${text.slice(0, 77)}...` : text
}

/** undefined where JSON cannot show it: functions, circles, big integers inside, a toJSON that throws. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
