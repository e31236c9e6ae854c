/*
 * A strict reader of the structured fields that responses carry (RFC 9651): lists of items, each an integer
 * or a string, with parameters that are integers. Anything else, a space too many, a sign, a sixteenth
 * digit, throws: what is read here any client can read.
 */

export interface Item {
  readonly value: number | string
  readonly parameters: Readonly<Record<string, number>>
}

/** The members of a list. */
export function parseList(text: string): Item[] {
  if (!/^[\x20-\x7e]+$/.test(text)) throw new Error(`not visible ASCII: ${JSON.stringify(text)}`)
  return text.split(', ').map(parseItem)
}

/** One item, as the only one of its field. */
export function parseItem(text: string): Item {
  const [bare = '', ...parameters] = text.split(';')
  const value = /^"[^"\\]*"$/.test(bare) ? bare.slice(1, -1) : parseWhole(bare)
  const entries = parameters.map((parameter): [string, number] => {
    const [, key = '', number = ''] = /^([a-z*][a-z0-9_.*-]*)=(.*)$/.exec(parameter) ?? []
    if (key === '') throw new Error(`no parameter: ${JSON.stringify(parameter)}`)
    return [key, parseWhole(number)]
  })
  if (new Set(entries.map(([key]) => key)).size !== entries.length) {
    throw new Error(`a parameter twice: ${text}`)
  }
  return { value, parameters: Object.fromEntries(entries) }
}

/** A number from 0 as fields have it: 1 to 15 digits, no sign, no point, no zero in front. */
export function parseWhole(text: string): number {
  if (!/^(0|[1-9]\d{0,14})$/.test(text)) throw new Error(`no whole number: ${JSON.stringify(text)}`)
  return Number(text)
}

/** The fields of a response that speak of limits, each read strictly: lists, or one number without more. */
export function rateLimitFields(fields: Iterable<[string, string]>): Record<string, Item[]> {
  const read: Record<string, Item[]> = {}
  for (const [name, text] of fields) {
    const key = name.toLowerCase()
    if (!key.includes('ratelimit')) continue
    const isList = key === 'ratelimit' || key === 'ratelimit-policy'
    read[key] = isList ? parseList(text) : [{ value: parseWhole(text), parameters: {} }]
  }
  return read
}
