/*
 * Starting wrongly gives one clear line and status 1, or 2 for wrong usage, and leaves nothing half-started;
 * ending loses no count.
 */
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { cli, root, run, startApp, temporaryFolder, until } from '../support/processes.js'

const serve = (env: Record<string, string>) =>
  run(process.execPath, [cli, 'serve'], {
    PORT: '0',
    TALLYGATE_DATABASE: join(temporaryFolder(), 'counts.db'),
    ...env,
  }).finished

function configOf(text: string): string {
  const path = join(temporaryFolder(), 'tallygate.yml')
  writeFileSync(path, text)
  return path
}

async function refusal(env: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await serve({ LOG_LEVEL: 'silent', ...env })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  const lines = stderr.trimEnd().split('\n')
  expect(lines).toHaveLength(1)
  return lines[0] ?? ''
}

const rule = (fields: string) => `rules:\n  - { ${fields} }\n`

describe('serve refuses, in one line,', () => {
  it('a configuration that is not there', async () => {
    expect(await refusal({ TALLYGATE_CONFIG: '/nowhere/rules.yml' })).toMatch(
      /^Cannot read the configuration \/nowhere\/rules\.yml: ENOENT.*TALLYGATE_CONFIG.*\(TALLYGATE_CONFIG_FILE\)$/,
    )
  })

  it('a configuration that is no YAML, with the place', async () => {
    const path = configOf('rules:\n  - { name: ip\n')
    const line = await refusal({ TALLYGATE_CONFIG: path })
    expect(line).toContain(`Cannot read ${path} as YAML`)
    expect(line).toMatch(/line \d+/)
  })

  it('a wrong rule, naming rule, field, what was received and what would be right', async () => {
    const path = configOf(rule('name: login, limit: 6O, window: 1m'))
    expect(await refusal({ TALLYGATE_CONFIG: path })).toBe(
      `Cannot create rule 'login': limit must be a whole number from 0 to 4294967295: ` +
        `received "6O" (TALLYGATE_RULE_VALUE)`,
    )
  })

  it('a field that it does not know, naming the nearest', async () => {
    const path = configOf(rule('name: login, limit: 6, windw: 1m'))
    expect(await refusal({ TALLYGATE_CONFIG: path })).toContain(
      `unknown field 'windw': did you mean window?`,
    )
  })

  it.each([
    ['persist: soon', 'persist must be true or false: received "soon"'],
    ['match: { paths: ["/:id"] }', 'parameters such as :id do not'],
    ['key: "(facts) => facts.ip"', 'a function is for rules in code, not for a file'],
  ])('what a file cannot have: %s', async (field, message) => {
    const path = configOf(rule(`name: login, limit: 6, window: 1m, ${field}`))
    expect(await refusal({ TALLYGATE_CONFIG: path })).toContain(message)
  })

  it('a field of another algorithm', async () => {
    const path = configOf(rule('name: login, limit: 6, window: 1m, burst: 3'))
    expect(await refusal({ TALLYGATE_CONFIG: path })).toContain(
      'burst is for algorithm token-bucket alone: received it with sliding-window',
    )
  })

  it('a time zone that is none', async () => {
    const path = configOf(`timeZone: Europe/Berlim\n${rule('name: ip, limit: 6, window: 1m')}`)
    expect(await refusal({ TALLYGATE_CONFIG: path })).toContain(
      'received "Europe/Berlim", did you mean Europe/Berlin?',
    )
  })

  it('a port in use', async () => {
    const app = await startApp()
    onTestFinished(() => void app.end())
    const { port } = new URL(app.url)
    expect(await refusal({ PORT: port })).toBe(
      `Cannot listen on 127.0.0.1:${port}: the port is in use; ` +
        `set PORT or HOST to another (TALLYGATE_LISTEN)`,
    )
  })

  it('a database path that cannot be written, with path and reason', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'file'), '')
    const path = join(folder, 'file', 'counts.db')
    const line = await refusal({ TALLYGATE_DATABASE: path })
    expect(line).toContain(`Cannot open the database ${path}: `)
    expect(line).toMatch(/file already exists|not a directory/)
  })

  it('a database that is a folder', async () => {
    const path = join(temporaryFolder(), 'folder.db')
    mkdirSync(path)
    expect(await refusal({ TALLYGATE_DATABASE: path })).toContain(
      `Cannot open the database ${path}`,
    )
  })

  it.each([
    ['PORT', '70000', 'PORT must be a port from 0 to 65535'],
    ['PORT', '3OOO', 'received "3OOO"'],
    ['TRUST_PROXY', 'true', 'TRUST_PROXY must be the number of proxies in front'],
    ['SESSION_MAX_AGE', 'soon', 'SESSION_MAX_AGE must be a span'],
    ['LOG_LEVEL', 'loud', 'LOG_LEVEL must be one of fatal, error'],
    ['TALLYGATE_ADMIN_TOKEN', 'short', 'Cannot use TALLYGATE_ADMIN_TOKEN: it must be at least 16'],
    ['TALLYGATE_METRICS_TOKEN', 'change-me-change-me', 'received a placeholder'],
  ])('%s=%s', async (name, value, message) => {
    expect(await refusal({ LOG_LEVEL: 'silent', [name]: value })).toContain(message)
  })

  it('SEC-04: in production a session secret that is missing, short or a placeholder', async () => {
    for (const secret of ['', 'short', 'change-me-change-me', 'your-secret-goes-here']) {
      const line = await refusal({ NODE_ENV: 'production', SESSION_SECRET: secret })
      expect(line).toContain('SESSION_SECRET')
      expect(line.includes(secret) && secret.length > 5).toBe(false)
    }
  })
})

describe('serve', () => {
  it('SEC-04: in development makes a secret up for each run, and says so', async () => {
    const { stderr } = await (await startApp()).end()
    expect(stderr.match(/SESSION_SECRET is not set/g)).toHaveLength(1)
  })

  it('prints where to look', async () => {
    const app = await startApp({ TALLYGATE_ADMIN_TOKEN: 'd41d8cd98f00b204' })
    const { stdout } = await app.end()
    for (const path of ['/', '/metrics', '/admin/stats']) expect(stdout).toContain(app.url + path)
    expect(stdout).toContain('global 1000/1m, ip 400/1m, session 200/1m, parse-url 60/1m')
    expect(stdout).not.toContain('d41d8cd98f00b204')
  })

  it('SQL-04: makes the folders of its database', async () => {
    const path = join(temporaryFolder(), 'a/b/c/stats.db')
    const app = await startApp({ TALLYGATE_DATABASE: path })
    const { code, stderr } = await app.end()
    expect(code).toBe(0)
    expect(stderr.split('\n').filter((line) => line.includes(path))).toHaveLength(1)
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('SQL-11: %s loses no count', async (signal) => {
    const path = join(temporaryFolder(), 'stats.db')
    const app = await startApp({ TALLYGATE_DATABASE: path })
    for (let sent = 0; sent < 7; sent++) await (await fetch(`${app.url}/api/ping`)).text()
    const { code } = await app.end(signal)
    expect(code).toBe(0)
    const database = new Sqlite(path, { readonly: true })
    onTestFinished(() => void database.close())
    const sum = database.prepare('SELECT sum(count) AS count FROM request_tallies WHERE window = ?')
    for (const window of ['minute', 'hour', 'day', 'week']) {
      expect(sum.get(window)).toEqual({ count: 7 })
    }
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok')
  })

  it('ends within seconds while a client keeps its connection and another is mid-request', async () => {
    const app = await startApp()
    await (await fetch(`${app.url}/api/ping`, { keepalive: true })).text()
    const { hostname, port } = new URL(app.url)
    const { connect } = await import('node:net')
    const half = connect(Number(port), hostname)
    half.on('error', () => undefined)
    half.write('POST /api/session HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc')
    await until(async () => half.bytesWritten > 0, 'the half request')
    const startedMs = Date.now()
    const { code } = await app.end()
    expect(code).toBe(0)
    expect(Date.now() - startedMs).toBeLessThan(5_000)
  })
})

describe('the command line', () => {
  const tallygate = (...args: string[]) => run(process.execPath, [cli, ...args]).finished

  it.each([[['--help']], [['serve', '--help']], [['check', '--help']], [['traffic', '--help']]])(
    'explains itself: %j',
    async (args) => {
      const { code, stdout } = await tallygate(...args)
      expect(code).toBe(0)
      expect(stdout).toContain('Usage: tallygate')
    },
  )

  it.each([[[]], [['nonsense']], [['serve', '--nonsense']], [['check']]])(
    'ends with status 2 for wrong usage: %j',
    async (args) => {
      const { code, stdout, stderr } = await tallygate(...args)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).not.toBe('')
    },
  )

  it('is built as a program that the shell can start', () => {
    expect(statSync(cli).mode & 0o111).toBe(0o111)
  })

  it('points at a window that may have been meant in seconds', async () => {
    const { code, stdout } = await tallygate(
      'check',
      configOf(rule('name: ip, limit: 1, window: 60')),
    )
    expect(code).toBe(0)
    expect(stdout).toContain('the window of ip is 60 milliseconds; for seconds write 60s')
  })

  it('names who is exempt, and refuses a range that is none', async () => {
    const exempting = (range: string) =>
      `rules: [{ name: ip, key: ip, limit: 1, window: 1m }]\nexempt: { ips: [${range}] }`
    const right = await tallygate('check', configOf(exempting('10.0.0.0/8, "::1"')))
    expect([right.code, right.stdout]).toEqual([
      0,
      expect.stringContaining('exempt: 10.0.0.0/8, ::1.'),
    ])
    const wrong = await tallygate('check', configOf(exempting('10.0.0.0/33')))
    expect([wrong.code, wrong.stdout]).toEqual([1, ''])
    expect(wrong.stderr).toContain('received "10.0.0.0/33" (TALLYGATE_CONFIG_FIELD)')
  })

  it('tells in words what a right configuration does', async () => {
    const { code, stdout } = await tallygate('check', join(root, 'tallygate.yml'))
    expect(code).toBe(0)
    expect(stdout).toContain('is right: 4 rules')
    expect(stdout).toContain('each client address may make 400 requests in 1m')
    expect(stdout.endsWith('\n')).toBe(true)
  })

  it('check says whose counts outlive the process', async () => {
    const rules = configOf(
      'rules: [{ name: a, limit: 5, window: 1d }, { name: b, limit: 5, window: 1m }]',
    )
    const { stdout } = await tallygate('check', rules)
    expect(stdout.match(/.*kept over restarts.*/g)).toEqual([expect.stringContaining('a: ')])
  })

  it('check says of headers, lists and match what they do', async () => {
    const rules = configOf(
      'rules:\n' +
        '  - { name: a, key: [ip, "header:X-Api-Key"], limit: 5, window: 1m, match: { methods: [post], paths: [/a] } }\n' +
        '  - { name: b, key: "header:x-api-key", limit: 5, window: 1m, absent: address }',
    )
    const { code, stdout } = await tallygate('check', rules)
    expect({ code, stdout }).toMatchObject({ code: 0 })
    expect(stdout).toContain(
      'a: each client address with each value of the header x-api-key may make 5 requests by POST to /a in 1m',
    )
    expect(stdout).toContain('requests without all of these are not counted here')
    expect(stdout).toContain('a request without that header counts by its address')
  })

  it('check says what time it is in the time zone of the tallies', async () => {
    const path = configOf(
      `timeZone: Asia/Kathmandu\nweekStartsOn: sunday\n${rule('name: ip, limit: 6, window: 1m')}`,
    )
    const { code, stdout } = await tallygate('check', path)
    expect(code).toBe(0)
    const [, time = ''] =
      /^Tallies follow Asia\/Kathmandu, weeks beginning on sunday: there it is (\S+\+05:45), in the week \d{4}-W\d\d\.$/m.exec(
        stdout,
      ) ?? []
    expect(Math.abs(Date.parse(time) - Date.now())).toBeLessThan(120_000)
  })

  it('ends with status 1 for a wrong configuration', async () => {
    const { code, stdout, stderr } = await tallygate('check', configOf(rule('name: A, limit: 1')))
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain("Cannot create rule 'A': name must be 1 to 64 of a-z")
  })
})

describe('npm start', () => {
  it('serves, and ends the app when npm is told to end', async () => {
    const path = join(temporaryFolder(), 'stats.db')
    // Not built anew: that would pull the build away from other suites.
    const npm = run('npm', ['start', '--ignore-scripts'], { PORT: '0', TALLYGATE_DATABASE: path })
    await until(async () => /listens on/.test(npm.stdout()), 'the app to listen')
    const url = /listens on (\S+)/.exec(npm.stdout())?.[1] ?? ''
    await (await fetch(`${url}/api/ping`)).text()
    expect((await npm.end()).code).toBe(0)
    await expect(fetch(`${url}/api/ping`)).rejects.toThrow('fetch failed')
    const database = new Sqlite(path, { readonly: true })
    onTestFinished(() => void database.close())
    const sum = database.prepare(`SELECT sum(count) AS count FROM request_tallies`)
    expect(sum.get()).toEqual({ count: 4 })
  })
})
