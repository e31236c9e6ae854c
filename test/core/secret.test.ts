/*
 * Secrets: which are refused, that a refusal never repeats them, and that a wrong one of any length is
 * simply wrong.
 */
import { describe, expect, it } from 'vitest'
import { bearerCheck, checkSecret } from '../../src/core/secret.js'
import { messageOf } from '../support/units/limits.js'

const good = 'k3v9-wq81-zz02-mm47'

describe('checkSecret', () => {
  it('lets a secret of 16 characters through', () => {
    expect(checkSecret('adminToken', good)).toBe(good)
    expect(checkSecret('adminToken', 'abcdefgh12345678')).toBe('abcdefgh12345678')
  })

  it('takes none and an empty one for none', () => {
    expect(checkSecret('adminToken', undefined)).toBeUndefined()
    expect(checkSecret('adminToken', '')).toBeUndefined()
  })

  it('refuses what is under 16 characters, naming the setting and never the secret', () => {
    const message = messageOf(() => checkSecret('SESSION_SECRET', 'hunter2-hunter2'))
    expect(message).toContain('SESSION_SECRET')
    expect(message).toContain('at least 16 characters: received 15')
    expect(message).not.toContain('hunter2')
  })

  it.each([
    'changeme-changeme',
    'please-change-me-now',
    'REPLACE_ME_WITH_SOMETHING',
    'your-secret-goes-here',
    'your_token_goes_here',
    'this-is-a-placeholder',
    'example-session-secret',
    'aaaaaaaaaaaaaaaaaaaa',
    '                    ',
  ])('refuses the placeholder %j', (value) => {
    const message = messageOf(() => checkSecret('SESSION_SECRET', value))
    expect(message).toContain('SESSION_SECRET')
    expect(message).toContain('a placeholder (TALLYGATE_SECRET)')
    expect(message).not.toContain(value)
  })
})

describe('bearerCheck', () => {
  const check = bearerCheck(good)

  it('knows the right token, however the scheme is spelt', () => {
    expect(check(`Bearer ${good}`)).toBe('right')
    expect(check(`bearer   ${good} `)).toBe('right')
    expect(check(`BEARER ${good}`)).toBe('right')
  })

  it.each([1, 15, 18, 20, 31, 33, 10_000])(
    'SEC-01: calls a token of %i characters wrong',
    (length) => {
      expect(check(`Bearer ${'x'.repeat(length)}`)).toBe('wrong')
    },
  )

  it('calls a prefix, an extension and another case of the token wrong', () => {
    for (const sent of [good.slice(0, -1), `${good}x`, good.toUpperCase(), `${good} x`]) {
      expect(check(`Bearer ${sent}`)).toBe('wrong')
    }
  })

  it.each([undefined, '', 'Bearer', 'Bearer ', 'Basic abc', good, `Token ${good}`])(
    'finds no token in %j',
    (header) => {
      expect(check(header)).toBe('absent')
    },
  )
})
