/*
 * Functions in rules, which only code can have. A decision is made at once, so what they give must be there
 * at once: async ones are refused at the start, a promise when it comes.
 */

/** Neither async nor a generator. */
export function isPlainFunction(value: unknown): boolean {
  if (typeof value !== 'function') return false
  return !/Async|Generator/.test(Object.prototype.toString.call(value))
}

/** Whether a text was perhaps meant as a function, as in a file. */
export function looksLikeFunction(value: unknown): boolean {
  return typeof value === 'string' && /=>|^\s*function\b/.test(value)
}

/** @throws TypeError where a function of a rule gave a promise. @param what it should have given. */
export function refusePromise(result: unknown, what: string): void {
  if (result === null || (typeof result !== 'object' && typeof result !== 'function')) return
  if (!('then' in result) || typeof result.then !== 'function') return
  // The error below tells of it; the promise's own would come later and end the process.
  Promise.resolve(result).catch(() => undefined)
  throw new TypeError(`Cannot decide: ${what} must be known at once: its function gave a promise`)
}
