/*
 * Who is let through without being asked: clients of `exempt.ips`, and requests of which `skip` says so.
 * An exempt request is charged to no rule and counted as exempt. Asked once a request; with neither option
 * set the answer is there for one comparison.
 */
import { AddressList } from '../core/address-list.js'
import { shown, TallygateError } from '../core/errors.js'
import { nearestName } from '../core/spelling.js'
import type { Answer } from '../stores/store.js'
import type { HttpRequest } from './http.js'

export interface ExemptOptions {
  /** Addresses and ranges, such as `127.0.0.1`, `10.0.0.0/8`, `2001:db8::/32`. */
  ips?: readonly string[] | undefined
}

/**
 * Whether a request is exempt; a promise that is rejected goes to Express as an error. A method's type,
 * because TypeScript lets its parameter be the more special one of Express's own.
 */
export type Skip = { says(request: HttpRequest): boolean | Promise<boolean> }['says']

export class Exemption {
  readonly #addresses: AddressList
  readonly #skip: Skip | undefined

  constructor(addresses: AddressList, skip: Skip | undefined) {
    this.#addresses = addresses
    this.#skip = skip
  }

  /**
   * @param address of the client, in its canonical text.
   * @returns a promise that is rejected where `skip` throws: the request is there, and is counted.
   */
  of(request: HttpRequest, address: string): Answer<boolean> {
    if (!this.#addresses.isEmpty && this.#addresses.contains(address)) return true
    return this.#skip === undefined ? false : answerOf(this.#skip, request)
  }
}

function answerOf(skip: Skip, request: HttpRequest): Answer<boolean> {
  try {
    const said: unknown = skip(request)
    // Any promise, of whatever library: taken as a value it would be true, and exempt everybody.
    return isThenable(said) ? Promise.resolve(said).then(Boolean) : Boolean(said)
  } catch (error) {
    return Promise.reject(error)
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}

const fields = ['ips']

/**
 * Makes the field `exempt` ready.
 *
 * @throws TallygateError naming the value that is no address or range, and what would be right.
 */
export function compileExempt(given: unknown): AddressList {
  const list = new AddressList()
  if (given === undefined) return list
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw refusal(
      `exempt must be a mapping such as { ips: [10.0.0.0/8] }: received ${shown(given)}`,
    )
  }
  for (const field of Object.keys(given)) {
    if (fields.includes(field)) continue
    const near = nearestName(field, fields)
    const advice = near === null ? `known fields are ${fields.join(', ')}` : `did you mean ${near}?`
    throw refusal(`unknown field ${shown(field)} of exempt: ${advice}`)
  }
  const { ips } = given as { ips?: unknown }
  if (ips === undefined) return list
  if (!Array.isArray(ips)) {
    throw refusal(`exempt.ips must be a list of addresses and ranges: received ${shown(ips)}`)
  }
  // Not forEach, which passes over holes.
  for (const [index, text] of ips.entries()) {
    if (typeof text === 'string' && list.add(text)) continue
    throw refusal(
      `exempt.ips[${index}] must be an address such as 192.0.2.7, or a range such as 10.0.0.0/8 ` +
        `or 2001:db8::/32: received ${shown(text)}${hintFor(text)}`,
    )
  }
  return list
}

/** What a reader of the message could not guess. */
function hintFor(text: unknown): string {
  if (typeof text === 'object' && text !== null) return ' (in YAML put an IPv6 address in quotes)'
  if (typeof text === 'string' && /^::ffff:[\d.]+\/\d+$/i.test(text)) {
    return ' (an IPv4 range is written without ::ffff:)'
  }
  return ''
}

function refusal(sentence: string): TallygateError {
  return new TallygateError('TALLYGATE_CONFIG_FIELD', `Cannot exempt clients: ${sentence}`)
}
