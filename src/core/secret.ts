/*
 * Shared secrets: refused where they protect nothing, compared in a time that tells nothing. What is
 * compared are digests, so neither the length nor the beginning of the secret shows.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { TallygateError } from './errors.js'

const secretLengthMin = 16

const placeholder = /change.?me|replace.?me|placeholder|your.?(secret|token)|example|^(.)\2+$/i

/**
 * A secret fit for use; undefined where none is set, and an empty one is none.
 *
 * @throws TallygateError naming the setting, never the secret.
 */
export function checkSecret(setting: string, value: unknown): string | undefined {
  if (value === undefined || value === '') return undefined
  if (typeof value !== 'string') {
    throw new TallygateError(
      'TALLYGATE_SECRET',
      `Cannot use ${setting}: it must be text: received a value of type ${typeof value}`,
    )
  }
  if (value.length < secretLengthMin) {
    throw new TallygateError(
      'TALLYGATE_SECRET',
      `Cannot use ${setting}: it must be at least ${secretLengthMin} characters: ` +
        `received ${value.length} characters`,
    )
  }
  if (!placeholder.test(value)) return value
  throw new TallygateError(
    'TALLYGATE_SECRET',
    `Cannot use ${setting}: it must be a random secret: received a placeholder`,
  )
}

export interface BearerCheck {
  /** Whether an Authorization header carries the token; `absent` where it carries none. */
  (authorization: string | undefined): 'right' | 'wrong' | 'absent'
}

export function bearerCheck(token: string): BearerCheck {
  const expected = digest(token)
  return (authorization) => {
    const sent = /^bearer +(.*)$/is.exec(authorization ?? '')?.[1]?.trim()
    if (sent === undefined || sent === '') return 'absent'
    return timingSafeEqual(digest(sent), expected) ? 'right' : 'wrong'
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
