/*
 * What would become of a request: the rules that would apply, how each stands, and no trace of the question.
 * And the lists of keys that such a question begins with.
 */
import type { Express } from 'express'
import { describe, expect, it } from 'vitest'
import type { ExplainedRule, Explanation } from '../../src/admin/explain.js'
import type { KeyLists } from '../../src/admin/keys.js'
import type { RuleOptions } from '../../src/core/rule.js'
import type { GateParts } from '../../src/gate/gate.js'
import { adminToken, administered, bearing, sending, type Administered } from '../support/admin.js'
import { countOf, guarded, statuses } from '../support/server.js'

const asking = (asked: Administered, body: object) =>
  asked.read<Explanation>('/explain', sending('POST', body))

const rulesOf = ({ rules }: Explanation) =>
  Object.fromEntries(rules.map((each) => [each.rule, each]))

/** Of which rules it says that they apply. */
const applying = ({ rules }: Explanation) =>
  rules.filter(({ applies }) => applies === true).map(({ rule }) => rule)

const silent: Omit<ExplainedRule, 'rule'> = {
  applies: false,
  usage: null,
  remaining: null,
  verdict: null,
  retryAfterMs: null,
}

function behindProxy(app: Express, gate: GateParts): void {
  app.set('trust proxy', 1)
  app.use(gate.middleware)
  app.use((_request, response) => void response.send('ok'))
}

const from = (address: string, more: Record<string, string> = {}) => ({
  headers: { 'x-forwarded-for': address, ...more },
})

const several: RuleOptions[] = [
  { name: 'global', limit: 100, window: '1m' },
  { name: 'ip', key: 'ip', limit: 3, window: '1m' },
  { name: 'api', key: 'header:x-api-key', limit: 5, window: '1m' },
  {
    name: 'login',
    key: 'ip',
    limit: 2,
    window: '1h',
    match: { methods: ['POST'], paths: ['/login'] },
  },
  { name: 'report', limit: 1, window: '1m', function: 'report' },
  { name: 'tried', key: 'ip', limit: 1, window: '1m', mode: 'shadow' },
  { name: 'off', limit: 1, window: '1m', mode: 'disabled' },
]

describe('an explanation', () => {
  it('says of each rule whether it would apply, and how it stands', async () => {
    const asked = await administered({ rules: several }, behindProxy)
    await statuses(4, () => asked.ask('/', from('203.0.113.7')))
    const found = await asking(asked, { address: '203.0.113.7' })
    expect(found).toMatchObject({ allowed: false, rule: 'ip', retryAfterMs: 80_000 })
    expect(found.rules).toEqual([
      {
        rule: 'global',
        applies: true,
        usage: 3,
        remaining: 97,
        verdict: 'within',
        retryAfterMs: 0,
      },
      { rule: 'ip', applies: true, usage: 3, remaining: 0, verdict: 'over', retryAfterMs: 80_000 },
      { rule: 'api', ...silent },
      { rule: 'login', ...silent },
      { rule: 'report', ...silent },
      {
        rule: 'tried',
        applies: true,
        usage: 1,
        remaining: 0,
        verdict: 'over',
        retryAfterMs: 120_000,
      },
      { rule: 'off', ...silent },
    ])
    const other = await asking(asked, { address: '203.0.113.8' })
    expect(other).toMatchObject({ allowed: true, rule: 'global', retryAfterMs: 0 })
    expect(applying(await asking(asked, {}))).toEqual(['global'])
  })

  it('takes nothing, counts nothing and leaves no trace', async () => {
    const asked = await administered({ rules: several }, behindProxy)
    await asked.ask('/', from('203.0.113.7'))
    const before = (await asked.admin('/stats')).text
    for (const body of [
      {},
      { address: '203.0.113.9' },
      { address: '203.0.113.7', function: 'report' },
    ]) {
      const first = await asking(asked, body)
      expect(await asking(asked, body)).toEqual(first)
    }
    expect((await asked.admin('/stats')).text).toBe(before)
  })

  it('asks the rules of a method and a path as the app compares them', async () => {
    const asked = await administered({ rules: several }, behindProxy)
    const appliesTo = async (method: string, path: string) =>
      applying(await asking(asked, { address: '192.0.2.1', method, path })).includes('login')
    expect(await appliesTo('POST', '/login')).toBe(true)
    expect(await appliesTo('post', '/LOGIN/?next=%2F')).toBe(true)
    expect(await appliesTo('GET', '/login')).toBe(false)
    expect(await appliesTo('POST', '/login/x')).toBe(false)
    const exact = await guarded({ rules: several, adminToken }, (app, gate) => {
      app.enable('case sensitive routing')
      app.use('/admin', gate.admin)
    })
    const shouted = sending('POST', { address: '192.0.2.1', method: 'POST', path: '/LOGIN' })
    const headers = { ...shouted.headers, ...bearing(adminToken).headers }
    const { text } = await exact.ask('/admin/explain', { ...shouted, headers })
    expect(applying(JSON.parse(text) as Explanation)).toEqual(['global', 'ip', 'tried'])
  })

  it('of a function has the general rules and its own', async () => {
    const asked = await administered({ rules: several }, behindProxy)
    const found = await asking(asked, { address: '192.0.2.1', function: 'report' })
    expect(applying(found)).toEqual(['global', 'ip', 'report', 'tried'])
  })

  it('by the id of a key asks the rules that count it, and nobody learns whose it is', async () => {
    const asked = await administered({ rules: several }, behindProxy)
    const secret = 'a-key-that-nobody-may-see'
    await statuses(4, () => asked.ask('/', from('203.0.113.7', { 'x-api-key': secret })))
    const idIn = async (rule: string) =>
      (await asked.read<KeyLists>(`/keys?rule=${rule}`)).heaviest[0]?.id
    const byKey = await asking(asked, { keyId: await idIn('api') })
    expect(applying(byKey)).toEqual(['global', 'api'])
    expect(rulesOf(byKey)['api']).toMatchObject({ usage: 3, remaining: 2, verdict: 'within' })
    expect(JSON.stringify(byKey)).not.toContain(secret)
    const byAddress = await asking(asked, { keyId: await idIn('ip') })
    expect(byAddress).toEqual(await asking(asked, { address: '203.0.113.7' }))
    const both = await asking(asked, { keyId: await idIn('api'), address: '203.0.113.7' })
    expect(applying(both)).toEqual(['global', 'ip', 'api', 'tried'])
    const nobody = await asking(asked, { keyId: '0123456789abcdef' })
    expect(applying(nobody)).toEqual(['global'])
  })

  it('of an exempt address has no rule', async () => {
    const asked = await administered(
      { rules: several, exempt: { ips: ['10.0.0.0/8'] } },
      behindProxy,
    )
    const found = await asking(asked, { address: '10.1.2.3' })
    expect([found.allowed, found.rule, applying(found)]).toEqual([true, null, []])
  })

  it('cannot say what a function makes of a request that is not there', async () => {
    const asked = await administered({
      rules: [
        {
          name: 'host',
          key: (facts) => (facts.request as Request).headers.get('host'),
          limit: 1,
          window: '1m',
        },
        {
          name: 'plan',
          key: 'ip',
          limit: ({ request }) => (request as { plan: number }).plan,
          window: '1m',
        },
        { name: 'path', key: ({ path }) => path, limit: 7, window: '1m' },
      ],
    })
    const found = rulesOf(await asking(asked, { address: '192.0.2.1', path: '/a' }))
    expect(found['host']).toEqual({ rule: 'host', ...silent, applies: null })
    expect(found['plan']).toEqual({ rule: 'plan', ...silent, applies: null })
    expect(found['path']).toMatchObject({ applies: true, remaining: 7 })
  })

  it('has null for a wait without an end', async () => {
    const asked = await administered({ rules: [{ name: 'closed', limit: 0, window: '1m' }] })
    const found = await asking(asked, {})
    expect([found.allowed, found.retryAfterMs, found.rules[0]?.verdict]).toEqual([
      false,
      null,
      'over',
    ])
  })

  it('takes null for what is left out', async () => {
    const asked = await administered({ rules: several }, behindProxy)
    const body = { method: null, path: null, address: '192.0.2.1', keyId: null, function: null }
    expect(await asking(asked, body)).toEqual(await asking(asked, { address: '192.0.2.1' }))
  })
})

describe('a question that cannot be answered', () => {
  it.each([
    [{ adress: '192.0.2.1' }, 400, 'unknown field "adress", did you mean address?'],
    [
      { address: 'localhost' },
      400,
      'address must be an IP address such as 203.0.113.7: received "localhost"',
    ],
    [{ address: 7 }, 400, 'address must be an IP address such as 203.0.113.7: received 7'],
    [{ path: 'login' }, 400, 'path must be a path as it stands in a request, such as /api/ping'],
    [{ method: 'G E T' }, 400, 'method must be a method such as GET'],
    [{ keyId: 'ip' }, 400, 'keyId must be 16 hexadecimal digits, the id of a key in /admin/keys'],
    [{ function: 'reprot' }, 400, 'function must be one of report: received "reprot"'],
    [[], 400, 'the body must be a JSON object with any of method, path, address, keyId, function'],
    ['{"address":', 400, 'the body must be JSON: '],
    [`{"path":"/${'x'.repeat(16_384)}"}`, 413, 'the body must be at most 16384 bytes'],
  ])('%j is refused with what would be right', async (body, status, detail) => {
    const { refusal } = await administered({ rules: several }, behindProxy)
    const [code, said] = await refusal('/explain', sending('POST', body))
    expect([code, said]).toEqual([status, expect.stringContaining(detail)])
  })

  it('needs JSON, and says so', async () => {
    const { refusal } = await administered({ rules: several })
    const form = new URLSearchParams({ address: '192.0.2.1' })
    expect(await refusal('/explain', { method: 'POST', body: form })).toEqual([
      415,
      'the body must be JSON, with Content-Type application/json: ' +
        'received application/x-www-form-urlencoded;charset=UTF-8',
    ])
    expect((await refusal('/explain', { method: 'POST' }))[0]).toBe(415)
    const packed = sending('POST', {})
    packed.headers = { ...packed.headers, 'content-encoding': 'gzip' }
    expect((await refusal('/explain', packed))[0]).toBe(415)
  })
})

describe('the keys of a rule', () => {
  it('are listed by their attempts, and by how often they were declined', async () => {
    const asked = await administered({ rules: several }, behindProxy)
    await statuses(9, () => asked.ask('/', from('203.0.113.1')))
    await statuses(5, () => asked.ask('/', from('203.0.113.2')))
    await asked.ask('/', from('203.0.113.3'))
    const shape = ({ key, requests, over }: KeyLists['heaviest'][0]) => [key, requests, over]
    const { heaviest, declined } = await asked.read<KeyLists>('/keys?rule=ip')
    expect(heaviest.map(shape)).toEqual([
      ['203.0.113.1', 9, 6],
      ['203.0.113.2', 5, 2],
      ['203.0.113.3', 1, 0],
    ])
    expect(declined.map(shape)).toEqual([
      ['203.0.113.1', 9, 6],
      ['203.0.113.2', 5, 2],
    ])
    const one = await asked.read<KeyLists>('/keys?rule=ip&limit=1')
    expect([one.heaviest.length, one.declined.length]).toEqual([1, 1])
    expect(await asked.read('/keys?rule=global')).toEqual({ heaviest: [], declined: [] })
  })

  it.each([
    ['', 400, 'rule must be one of global, ip, api, login, report, tried, off: received nothing'],
    ['?rule=ipp', 404, 'no rule is called "ipp", did you mean ip?'],
    ['?rule=ip&limit=0', 400, 'limit must be a whole number from 1 to 1000: received "0"'],
    ['?rule=ip&limit=1e2', 400, 'received "1e2"'],
    ['?rule=ip&max=5', 400, 'unknown parameter "max"'],
  ])('%s is refused with what would be right', async (query, status, detail) => {
    const { refusal } = await administered({ rules: several })
    const [code, said] = await refusal(`/keys${query}`)
    expect([code, said]).toEqual([status, expect.stringContaining(detail)])
  })
})

describe('a key that is forgotten', () => {
  it('begins anew at once, and others do not', async () => {
    const asked = await administered({ rules: several.slice(0, 2) }, behindProxy)
    const burst = (address: string) => statuses(4, () => asked.ask('/', from(address)))
    for (const address of ['203.0.113.7', '203.0.113.8']) {
      expect(countOf(await burst(address), 200)).toBe(3)
    }
    const { heaviest } = await asked.read<KeyLists>('/keys?rule=ip')
    const id = heaviest.find(({ key }) => key === '203.0.113.7')?.id ?? ''
    const forgotten = await asked.admin(`/rules/ip/keys/${id}`, { method: 'DELETE' })
    expect([forgotten.status, forgotten.text]).toEqual([204, ''])
    expect(countOf(await burst('203.0.113.7'), 200)).toBe(3)
    expect(countOf(await burst('203.0.113.8'), 200)).toBe(0)
    const { entries } = await asked.read<{ entries: object[] }>('/audit')
    expect(entries).toEqual([
      {
        at: '2025-10-09T09:00:00.000Z',
        rule: 'ip',
        action: 'forget-key',
        before: { id, key: '203.0.113.7' },
        after: null,
      },
    ])
  })

  it.each([
    ['/rules/ipp/keys/0123456789abcdef', 404, 'no rule is called "ipp", did you mean ip?'],
    ['/rules/ip/keys/0123456789abcdef', 404, `rule 'ip' knows no key "0123456789abcdef"`],
    ['/rules/ip/keys/0123456700000000', 400, 'a key must be named by 16 hexadecimal digits'],
    ['/rules/ip/keys/203.0.113.7', 400, 'a key must be named by 16 hexadecimal digits'],
  ])('%s is refused, and nothing is audited', async (path, status, detail) => {
    const asked = await administered({ rules: several })
    await asked.ask()
    const [code, said] = await asked.refusal(path, { method: 'DELETE' })
    expect([code, said]).toEqual([status, expect.stringContaining(detail)])
    expect(await asked.read('/audit')).toEqual({ entries: [] })
    expect((await asked.gate.stats()).rules.find(({ name }) => name === 'ip')?.trackedKeys).toBe(1)
  })
})
