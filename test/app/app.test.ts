/*
 * The built app as a process of its own, over real HTTP: its routes, its sessions, what is outside the limits.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { parseExposition, valueOf } from '../support/exposition.js'
import { startApp, temporaryFolder, until, type StartedApp } from '../support/processes.js'

/** An app with rules of its own; it ends with the test or suite that started it. */
async function appWith(
  rules: readonly object[],
  env: Record<string, string> = {},
): Promise<StartedApp & { database: string; env: Record<string, string> }> {
  const folder = temporaryFolder()
  const config = join(folder, 'tallygate.yml')
  const database = join(folder, 'counts.db')
  writeFileSync(config, JSON.stringify({ rules }))
  const whole = { TALLYGATE_CONFIG: config, TALLYGATE_DATABASE: database, ...env }
  return { ...(await startApp(whole)), database, env: whole }
}

async function statusOf(url: string, init: RequestInit = {}): Promise<number> {
  const response = await fetch(url, init)
  await response.arrayBuffer()
  return response.status
}

async function repeat(count: number, ask: (index: number) => Promise<number>): Promise<number[]> {
  const seen: number[] = []
  for (let index = 0; index < count; index++) seen.push(await ask(index))
  return seen
}

const passed = (seen: readonly number[]) => seen.filter((status) => status < 400).length

async function beginSession(app: StartedApp, headers: Record<string, string> = {}) {
  const response = await fetch(`${app.url}/api/session`, { method: 'POST', headers })
  await response.arrayBuffer()
  const setCookie = response.headers.get('set-cookie') ?? ''
  return { setCookie, cookie: setCookie.split(';')[0] ?? '' }
}

function sessionRows(database: string): { id_hash: string; data: string; expires_ms: number }[] {
  const connection = new Sqlite(database, { readonly: true })
  try {
    return connection.prepare('SELECT * FROM sessions').all() as ReturnType<typeof sessionRows>
  } finally {
    connection.close()
  }
}

describe('the bundled app', () => {
  let app: StartedApp & { database: string }
  beforeAll(async () => {
    app = await appWith([
      { name: 'global', limit: 5, window: '1d' },
      { name: 'parse-url', limit: 2, window: '1d', function: 'parse-url' },
    ])
  })
  afterAll(() => app.end())

  it('MET-06: health checks and scrapes are outside limits and tallies', async () => {
    for (const path of ['/metrics', '/healthz', '/readyz']) {
      expect(passed(await repeat(60, () => statusOf(app.url + path)))).toBe(60)
    }
    expect(await app.stats()).toMatchObject({ totals: { requests: 0 } })
    expect(passed(await repeat(6, () => statusOf(`${app.url}/api/ping`)))).toBe(5)
    expect(await app.stats()).toMatchObject({ totals: { requests: 6, allowed: 5, declined: 1 } })
  })

  it('guards and counts unknown paths too', async () => {
    expect(await statusOf(`${app.url}/nothing/here`)).toBe(429)
    expect(await app.stats()).toMatchObject({ totals: { requests: 7 } })
  })

  it('tells whether it is ready, and what is degraded', async () => {
    const response = await fetch(`${app.url}/readyz`)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(await response.json()).toEqual({ status: 'ready', degraded: [] })
  })

  it('MET-10: answers scrapes in the text format 0.0.4 whatever is accepted', async () => {
    for (const accept of ['*/*', 'application/openmetrics-text; version=1.0.0', 'text/html']) {
      const response = await fetch(`${app.url}/metrics`, { headers: { accept } })
      const text = await response.text()
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(text.startsWith('# HELP') && text.endsWith('\n')).toBe(true)
    }
  })
})

describe('the routes', () => {
  let app: StartedApp & { database: string }
  beforeAll(async () => {
    app = await appWith([
      { name: 'ip', key: 'ip', limit: 100_000, window: '1m' },
      { name: 'parse-url', limit: 2, window: '1d', function: 'parse-url' },
    ])
  })
  afterAll(() => app.end())

  it('show a page that names the limits and runs no foreign code', async () => {
    const response = await fetch(app.url)
    const page = await response.text()
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(page).toContain('<code>parse-url</code>')
    expect(response.headers.get('x-powered-by')).toBe(null)
  })

  it('answer a ping', async () => {
    const response = await fetch(`${app.url}/api/ping`)
    expect(await response.json()).toEqual({ ok: true })
  })

  it('answer unknown paths with a problem document', async () => {
    const response = await fetch(`${app.url}/nothing`)
    expect(response.status).toBe(404)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
  })

  it('answer a malformed path with 400 and no stack', async () => {
    const response = await fetch(`${app.url}/%E0%A4%A`)
    expect(response.status).toBeLessThan(500)
    expect(await response.text()).not.toContain('at ')
  })

  it('MET-01: ten thousand unknown paths add no series but one', async () => {
    const lines = async () => (await (await fetch(`${app.url}/metrics`)).text()).split('\n').length
    // The first scrape makes the series of its own route.
    await lines()
    const before = await lines()
    for (let batch = 0; batch < 200; batch++) {
      await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          statusOf(`${app.url}/x/${batch}/${index}?${'y'.repeat(index)}`),
        ),
      )
    }
    expect((await lines()) - before).toBeLessThanOrEqual(20)
    const series = parseExposition(await (await fetch(`${app.url}/metrics`)).text())
    const unmatched = { method: 'GET', route: 'unmatched', code: '404', le: '+Inf' }
    expect(
      valueOf(series, 'tallygate_http_request_duration_seconds_bucket', unmatched),
    ).toBeGreaterThanOrEqual(10_000)
  }, 60_000)
})

describe('a session', () => {
  const rules = [
    { name: 'ip', key: 'ip', limit: 10_000, window: '1d' },
    { name: 'session', key: 'session', limit: 5, window: '1d' },
  ]

  it('SES-03: a client that drops or invents its cookie counts by its address', async () => {
    const app = await appWith(rules)
    onTestFinished(() => void app.end())
    expect(passed(await repeat(20, () => statusOf(`${app.url}/api/ping`)))).toBe(5)
    const forged = (index: number) => ({ cookie: `tallygate.sid=s%3Aforged${index}.signature` })
    const seen = await repeat(20, (index) =>
      statusOf(`${app.url}/api/ping`, { headers: forged(index) }),
    )
    expect(passed(seen)).toBe(0)
  })

  it('has a quota of its own once its cookie names it, and each session another', async () => {
    const app = await appWith(rules)
    onTestFinished(() => void app.end())
    const sessions = [await beginSession(app), await beginSession(app)]
    for (const { cookie } of sessions) {
      const seen = await repeat(8, () => statusOf(`${app.url}/api/ping`, { headers: { cookie } }))
      expect(passed(seen)).toBe(5)
    }
  })

  it('with `absent: skip` leaves requests without a session to the other rules', async () => {
    const app = await appWith([{ ...rules[1], absent: 'skip' }])
    onTestFinished(() => void app.end())
    expect(passed(await repeat(20, () => statusOf(`${app.url}/api/ping`)))).toBe(20)
    const { cookie } = await beginSession(app)
    const seen = await repeat(20, () => statusOf(`${app.url}/api/ping`, { headers: { cookie } }))
    expect(passed(seen)).toBe(5)
  })

  it('ends where the client ends it; the old cookie is nobody afterwards', async () => {
    const app = await appWith([{ ...rules[1], absent: 'skip' }])
    onTestFinished(() => void app.end())
    const { cookie } = await beginSession(app)
    const headers = { cookie }
    expect(await statusOf(`${app.url}/api/session`, { method: 'DELETE', headers })).toBe(204)
    await until(async () => sessionRows(app.database).length === 0, 'the row to go')
    const response = await fetch(`${app.url}/api/ping`, { headers })
    expect(response.headers.get('ratelimit')).toBe(null)
    expect(response.headers.get('set-cookie')).toBe(null)
  })

  it('SES-01: is never made by the limiter', async () => {
    const app = await appWith(rules)
    onTestFinished(() => void app.end())
    const ask = async () => {
      const response = await fetch(`${app.url}/api/ping`)
      await response.arrayBuffer()
      expect(response.headers.get('set-cookie')).toBe(null)
      return response.status
    }
    for (let batch = 0; batch < 40; batch++) await Promise.all(Array.from({ length: 50 }, ask))
    expect(sessionRows(app.database)).toEqual([])
    const { rules: shown } = await app.stats()
    expect(shown.find((rule) => rule.name === 'session')?.trackedKeys).toBe(1)
  })

  it('SES-05: is not made for a declined request', async () => {
    const app = await appWith([{ name: 'ip', key: 'ip', limit: 10, window: '1d' }])
    onTestFinished(() => void app.end())
    const begin = () => statusOf(`${app.url}/api/session`, { method: 'POST' })
    for (let batch = 0; batch < 20; batch++) await Promise.all(Array.from({ length: 50 }, begin))
    expect(sessionRows(app.database).length).toBe(10)
  })

  it('SEC-07: ends with its cookie, however much it is used', async () => {
    const app = await appWith([{ ...rules[1], limit: 1000, absent: 'skip' }], {
      SESSION_MAX_AGE: '2s',
    })
    onTestFinished(() => void app.end())
    const { cookie } = await beginSession(app)
    await until(async () => sessionRows(app.database).length === 1, 'the row')
    const [row] = sessionRows(app.database)
    const isKnown = async () => {
      const response = await fetch(`${app.url}/api/ping`, { headers: { cookie } })
      await response.arrayBuffer()
      return response.headers.has('ratelimit')
    }
    expect(await isKnown()).toBe(true)
    await until(async () => Date.now() > (row?.expires_ms ?? 0) - 600, 'the end to come near')
    expect(await isKnown()).toBe(true)
    expect(sessionRows(app.database)[0]?.expires_ms).toBe(row?.expires_ms)
    await until(async () => Date.now() > (row?.expires_ms ?? 0), 'the end')
    expect(await isKnown()).toBe(false)
  })

  it('is not looked for to be ended where a visitor has none', async () => {
    const app = await appWith(rules)
    onTestFinished(() => void app.end())
    const ended = await fetch(`${app.url}/api/session`, { method: 'DELETE' })
    expect([ended.status, ended.headers.get('set-cookie')]).toEqual([204, null])
  })

  it('whose row is damaged is none, and another may begin', async () => {
    // Read from its row: the process that began a session has a copy of its own.
    const secret = { SESSION_SECRET: 'a secret of these tests' }
    const first = await appWith([{ ...rules[1], absent: 'skip' }], secret)
    const { cookie } = await beginSession(first)
    await first.end()
    for (const data of ['{"cookie', 'null', '7', '{}']) {
      const connection = new Sqlite(first.database)
      connection.prepare('UPDATE sessions SET data = ?').run(data)
      connection.close()
      const app = await startApp(first.env)
      const response = await fetch(`${app.url}/api/ping`, { headers: { cookie } })
      expect([response.status, response.headers.get('ratelimit')]).toEqual([200, null])
      const { setCookie } = await beginSession(app, { cookie })
      expect(setCookie).toMatch(/^tallygate\.sid=/)
      await app.end()
    }
  })

  it('SES-07: that has expired is deleted when the app starts, a live one is not', async () => {
    const app = await appWith(rules)
    await beginSession(app)
    await app.end()
    const connection = new Sqlite(app.database)
    const insert = connection.prepare('INSERT INTO sessions VALUES (?, ?, ?)')
    for (let index = 0; index < 1000; index++) insert.run(`old${index}`, '{}', Date.now() - 1)
    connection.close()
    const again = await startApp({ TALLYGATE_DATABASE: app.database })
    onTestFinished(() => void again.end())
    await until(async () => sessionRows(app.database).length === 1, 'the old ones to go')
    expect(sessionRows(app.database)[0]?.data).toContain('startedAt')
  })

  it('SES-08: has a cookie that is Secure behind a proxy that is trusted', async () => {
    const env = { NODE_ENV: 'production', SESSION_SECRET: 'b7d04c9e15fa42c8', TRUST_PROXY: '1' }
    const app = await appWith(rules, env)
    onTestFinished(() => void app.end())
    const { setCookie } = await beginSession(app, { 'x-forwarded-proto': 'https' })
    expect(setCookie).toMatch(/; Secure/)
    expect(setCookie).toMatch(/; HttpOnly/)
    expect(setCookie).toMatch(/; SameSite=Lax/)
    const alone = await appWith(rules, { ...env, TRUST_PROXY: '' })
    const { stderr } = await alone.end()
    expect(stderr.split('\n').filter((line) => line.includes('TRUST_PROXY')).length).toBe(1)
  })

  it('KEY-08: is nowhere in clear', async () => {
    const app = await appWith(rules, { LOG_LEVEL: 'trace' })
    const { cookie } = await beginSession(app)
    const id = /s%3A([^.]+)\./.exec(cookie)?.[1] ?? ''
    expect(id.length).toBeGreaterThan(16)
    const secret = 'a1b2c3d4e5f60718'
    const headers = { cookie, authorization: `Bearer ${secret}` }
    await repeat(8, () => statusOf(`${app.url}/api/ping`, { headers }))
    await statusOf(`${app.url}/admin/stats`, { headers })
    const shown = [
      await (await fetch(`${app.url}/metrics`)).text(),
      JSON.stringify(await app.stats()),
      JSON.stringify(sessionRows(app.database)),
    ]
    const { stdout, stderr } = await app.end()
    for (const text of [...shown, stdout, stderr]) {
      expect(text.includes(id) || text.includes(secret)).toBe(false)
    }
  })
})
