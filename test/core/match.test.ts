/*
 * Which requests a rule is for: a table of patterns and paths, what is refused because no request could
 * meet it, and what a rule does where the facts do not say.
 */
import { describe, expect, it } from 'vitest'
import type { Facts } from '../../src/core/facts.js'
import { RequestMatch } from '../../src/core/match.js'
import { compileRule, type RuleOptions } from '../../src/core/rule.js'
import { benchOf, burst, ipRule, messageOf, passedOf, someone } from '../support/units/limits.js'

const matches = (paths: string[], facts: Facts) => new RequestMatch({ paths }).includes(facts)

describe('a path', () => {
  it.each([
    ['/login', '/login', true],
    ['/login', '/LOGIN', true],
    ['/login', '/login/', true],
    ['/login', '/login//', true],
    ['/login/', '/login', true],
    ['/LOGIN', '/login', true],
    ['/login', '/login/x', false],
    ['/login', '/loginx', false],
    ['/login', '/x/login', false],
    ['/login', '//login', false],
    ['/login', '/log', false],
    ['/login', '/%6Cogin', false],
    ['/login', '', false],
    ['/', '/', true],
    ['/', '//', true],
    ['/', '/x', false],
    ['/api/*', '/api/x', true],
    ['/api/*', '/API/x/y/', true],
    ['/api/*', '/api//', true],
    ['/api/*', '/api/\n', true],
    ['/api/*', '/api/', false],
    ['/api/*', '/api', false],
    ['/api/*', '/apix', false],
    ['/api*', '/apix', true],
    ['/api*', '/api', false],
    ['/*', '/x', true],
    ['/*', '/', false],
    ['*', '*', true],
    ['*', '/', true],
    ['/a.b', '/a.b', true],
    ['/a.b', '/axb', false],
    ['/a+(b)$', '/a+(b)$', true],
    ['/a+', '/aa', false],
    ['/12:30', '/12:30', true],
    ['/a%20b', '/a%20b', true],
    ['/a-b_c~d', '/a-b_c~d', true],
  ])('of pattern %s and %s: %s', (pattern, path, is) => {
    expect(matches([pattern], { path })).toBe(is)
    expect(matches(['/never', pattern], { path })).toBe(is)
  })

  it('is compared by letter case and the slash at its end where the app does', () => {
    const ways = [
      { isPathCaseSensitive: true },
      { isPathStrict: true },
      { isPathCaseSensitive: true, isPathStrict: true },
    ]
    const seen = ways.map((way) =>
      ['/Login', '/login', '/Login/'].map((path) => matches(['/Login'], { path, ...way })),
    )
    expect(seen).toEqual([
      [true, false, true],
      [true, true, false],
      [true, false, false],
    ])
    expect(matches(['/Api/*'], { path: '/api/x', isPathCaseSensitive: true })).toBe(false)
    expect(matches(['/login/'], { path: '/login', isPathStrict: true })).toBe(false)
    expect(matches(['/'], { path: '//', isPathStrict: true })).toBe(false)
  })

  it('that is long takes no longer than it must', () => {
    const path = `/${'a/'.repeat(100_000)}`
    expect(matches(['/a/*', '/a'], { path })).toBe(true)
    expect(matches(['/b', `/${'a/'.repeat(400)}`], { path })).toBe(false)
  })
})

describe('a method', () => {
  const get = new RequestMatch({ methods: ['get'] })
  const post = new RequestMatch({ methods: ['POST', 'Put'] })

  it('is compared in capitals, and GET includes HEAD', () => {
    expect(['GET', 'HEAD', 'get', 'POST'].map((method) => get.includes({ method }))).toEqual([
      true,
      true,
      true,
      false,
    ])
    expect(['POST', 'put', 'GET', 'HEAD'].map((method) => post.includes({ method }))).toEqual([
      true,
      true,
      false,
      false,
    ])
    expect(new RequestMatch({ methods: ['HEAD'] }).includes({ method: 'GET' })).toBe(false)
  })
})

describe('a rule with match', () => {
  const login = { methods: ['POST'], paths: ['/login'] }

  it('applies only where method and path are both right', () => {
    const { limiter } = benchOf(ipRule({ match: login, limit: 1 }), ipRule({ name: 'all' }))
    const rulesFor = (method: string, path: string) =>
      limiter.decide({ ...someone, method, path }).verdicts.map(({ rule }) => rule)
    expect(rulesFor('POST', '/login')).toEqual(['ip', 'all'])
    expect(rulesFor('GET', '/login')).toEqual(['all'])
    expect(rulesFor('POST', '/')).toEqual(['all'])
    expect(limiter.decide({ ...someone, method: 'POST', path: '/LOGIN/' }).rule).toBe('ip')
  })

  it('applies to no facts that lack the method or the path it asks for', () => {
    const { limiter } = benchOf(ipRule({ match: login, limit: 0 }))
    const none: Facts[] = [someone, { ...someone, method: 'POST' }, { ...someone, path: '/login' }]
    for (const facts of none) expect(limiter.decide(facts).verdicts).toEqual([])
    const odd = { ...someone, method: 5, path: null } as unknown as Facts
    expect(limiter.decide(odd).verdicts).toEqual([])
  })

  it('does not apply even where its key is given by name', () => {
    const { limiter } = benchOf(ipRule({ match: login, limit: 0 }))
    expect(limiter.decide({ keys: { ip: 'me' }, path: '/x' }).verdicts).toEqual([])
  })

  it('takes its candidates with it', () => {
    const { limiter } = benchOf(ipRule({ match: login, limit: 1, candidates: [{ limit: 5 }] }))
    const facts = { ...someone, method: 'POST', path: '/login' }
    expect(passedOf(burst(limiter, 3, facts))).toBe(1)
    expect(passedOf(burst(limiter, 3))).toBe(3)
  })

  it('is reset and adjusted by key, whatever the facts say of the request', () => {
    const { limiter } = benchOf(ipRule({ match: login, limit: 1 }))
    const facts = { ...someone, method: 'POST', path: '/login' }
    burst(limiter, 2, facts)
    limiter.reset('ip', someone)
    expect(limiter.decide(facts).allowed).toBe(true)
    limiter.adjust('ip', someone, -1)
    expect(limiter.decide(facts).allowed).toBe(true)
  })

  it('with a function holds to both', () => {
    const { limiter } = benchOf(ipRule({ match: login, function: 'mail' }))
    const facts = { ...someone, method: 'POST', path: '/login' }
    const applied = (of: Facts, options?: object) => limiter.decide(of, options).verdicts.length
    expect(applied(facts)).toBe(0)
    expect(applied(facts, { function: 'mail' })).toBe(1)
    expect(applied(someone, { function: 'mail' })).toBe(0)
  })

  it('keeps what it matches: that cannot be changed live, nor by the list it was made of', () => {
    const paths = ['/login']
    const { limiter } = benchOf(ipRule({ match: { paths }, limit: 1 }))
    expect(messageOf(() => limiter.configure('ip', { match: login } as object))).toContain(
      'match stays as it was created',
    )
    paths[0] = '/other'
    limiter.configure('ip', { limit: 0 })
    expect(limiter.decide({ ...someone, path: '/login' }).allowed).toBe(false)
  })
})

describe('a refused match', () => {
  it.each([
    [{ paths: ['/users/:id'] }, 'parameters such as :id do not'],
    [{ paths: ['/file.:ext'] }, 'parameters such as :id do not'],
    [{ paths: ['/a*b'] }, '* is known only at the end'],
    [{ paths: ['/*splat'] }, '* is known only at the end'],
    [{ paths: ['**'] }, 'does not begin with /'],
    [{ paths: ['login'] }, 'does not begin with /'],
    [{ paths: [''] }, 'does not begin with /'],
    [{ paths: ['/a?b=1'] }, 'a path has neither query nor fragment'],
    [{ paths: ['/a#b'] }, 'a path has neither query nor fragment'],
    [{ paths: ['/a b'] }, 'with escapes such as %20'],
    [{ paths: ['/café'] }, 'with escapes such as %20'],
    [{ paths: ['/a{/b}'] }, 'only * at the end stands for something'],
    [{ paths: [String.raw`/\d+`] }, 'only * at the end stands for something'],
    [{ paths: ['/x'.repeat(501)] }, 'is longer than 1000 characters'],
    [{ paths: [] }, 'paths is empty'],
    [{ paths: [null] }, 'paths has null, which is no text'],
    [{ paths: '/login' }, 'paths is no list'],
    [{ methods: ['PSOT'] }, 'is no method: did you mean POST?'],
    [{ methods: [] }, 'methods is empty'],
    [{ methods: [true] }, 'methods has true'],
    [{ methods: Array(101).fill('GET') }, 'methods has more than 100 entries'],
    [{ path: ['/login'] }, 'unknown field "path": did you mean paths?'],
    [{}, 'it says neither methods nor paths'],
    [[], 'it is no mapping'],
    ['/login', 'it is no mapping'],
  ])('%j says why', (match, why) => {
    const options = ipRule({ match: match as RuleOptions['match'] })
    const message = messageOf(() => compileRule(options, 0))
    expect(message).toContain("Cannot create rule 'ip': match must be methods, paths or both")
    expect(message).toContain(why)
    expect(message.split('\n')).toHaveLength(1)
  })
})
