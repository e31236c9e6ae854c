/*
 * Whom a rule counts. A key is a kind and a text: keys of different kinds never meet, so an address and a
 * session never share one, whatever their texts are. Its hash is made with it, once for all rules of an
 * attempt, and with the seed of the one maker that a limiter has.
 *
 * The text may be a secret (a session's id, an API key): it never leaves the process and is never shown,
 * save an address's. What is kept or sent is the hash, or a digest with a key of its own.
 */
import { clientAddress } from './address.js'
import { KeyHasher } from './hash.js'
import { keyIdOf } from './key-id.js'

export const keyKinds = {
  global: 0,
  address: 1,
  session: 2,
  given: 3,
  /** One header, as Node joins its values. */
  header: 4,
  /** Several texts in place of one, of a header or a function, each with its length before it. */
  texts: 5,
  /** What a function of the rule gave. */
  function: 6,
  /** Whatever a function gave that is neither text, number, texts nor nothing: one key for all of it. */
  odd: 7,
  /** Several parts, each with its kind and length before it. */
  list: 8,
} as const

export interface Key {
  /** One of `keyKinds`. */
  readonly kind: number
  readonly text: string
  /** The seeded hash, two words of 32 bits as signed integers; `low` is never 0. */
  readonly low: number
  readonly high: number
}

/** Added to the kind of a key that counts preflights: more than any kind. */
const preflightKinds = 16

export class KeyMaker {
  /** The one key of rules that count everybody together. */
  readonly everybody: Key
  readonly #hasher: KeyHasher
  readonly #kindBase: number
  #preflights: KeyMaker | null = null
  /** The last address asked for: attempts in a row are often of one client. */
  #ip = ''
  #ipv6Prefix = 0
  #address: Key

  constructor(hasher = new KeyHasher(), kindBase = 0) {
    this.#hasher = hasher
    this.#kindBase = kindBase
    this.everybody = this.of(keyKinds.global, '')
    this.#address = this.everybody
  }

  /** @param ipv6Prefix bits of an IPv6 address that make one client. */
  address(ip: string, ipv6Prefix: number): Key {
    if (ip !== this.#ip || ipv6Prefix !== this.#ipv6Prefix) {
      this.#address = this.of(keyKinds.address, clientAddress(ip, ipv6Prefix))
      this.#ip = ip
      this.#ipv6Prefix = ipv6Prefix
    }
    return this.#address
  }

  of(kind: number, text: string): Key {
    const hasher = this.#hasher
    const ownKind = this.#kindBase + kind
    hasher.hash(ownKind, text)
    return { kind: ownKind, text, low: hasher.low, high: hasher.high }
  }

  /** Tells whether another maker, in another process too, gives the same keys the same hashes. */
  get space(): string {
    return keyIdOf(this.everybody)
  }

  /** Makes keys that meet none of this one's: the same clients, asking before they ask. */
  get preflights(): KeyMaker {
    if (this.#kindBase > 0) return this
    return (this.#preflights ??= new KeyMaker(this.#hasher, preflightKinds))
  }
}
