/*
 * `tallygate traffic` as a person meets it: what it prints and the status it ends with.
 */
import { createServer, type AddressInfo } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { cli, run, startApp } from '../support/processes.js'

interface Ended {
  status: number | null
  out: string
  err: string
}

async function traffic(args: readonly string[], interruptWhen?: Promise<unknown>): Promise<Ended> {
  const sending = run(process.execPath, [cli, 'traffic', ...args])
  void interruptWhen?.then(() => sending.child.kill('SIGINT'))
  const { code, stdout, stderr } = await sending.finished
  return { status: code, out: stdout, err: stderr }
}

describe('tallygate traffic', () => {
  it('sums up a run in figures that add up, and says where to look next', async () => {
    const app = await startApp({ TRUST_PROXY: '1' })
    try {
      const args = [app.url, '--duration', '2s', '--rate', '60', '--seed', '9']
      const { status, out, err } = await traffic(args)
      expect({ status, err }).toEqual({ status: 0, err: '' })
      const { totals } = await app.stats()
      expect(out).toMatch(
        new RegExp(`^${totals.requests} requests of \\d+ clients in .* seed 9\\)`),
      )
      expect(out).toContain(`${totals.requests} answered + 0 failed`)
      expect(out).toContain(`${app.url}/metrics`)
      expect(out).not.toContain('hint')
    } finally {
      await app.end()
    }
  })

  it('ends at once on SIGINT, with the summary and status 0', async () => {
    const app = await startApp()
    try {
      const isUnderWay = vi.waitFor(
        async () => expect((await app.stats()).totals.requests).toBeGreaterThan(5),
        { timeout: 20_000 },
      )
      const { status, out } = await traffic([app.url, '--duration', '5m'], isUnderWay)
      expect(status).toBe(0)
      expect(out).toContain('stopped early')
      expect(out).toContain(`${(await app.stats()).totals.requests} answered + 0 failed`)
    } finally {
      await app.end()
    }
  })

  it('explains itself', async () => {
    const { status, out } = await traffic(['--help'])
    expect(status).toBe(0)
    for (const word of ['--duration', '--rate', '--seed', '--allow-remote', 'TRUST_PROXY=1']) {
      expect(out).toContain(word)
    }
  })

  it('says what to do where nothing answers', async () => {
    const { status, out, err } = await traffic([`http://127.0.0.1:${await closedPort()}`])
    expect({ status, out }).toEqual({ status: 1, out: '' })
    expect(err).toMatch(/^Cannot send traffic to .*ECONNREFUSED.*start it with npm start.*\n$/)
  })

  const wrong = [
    [['http://example.com'], '--allow-remote'],
    [['http://127.0.0.1.example.com'], '--allow-remote'],
    [['http://localhost@192.0.2.1'], 'user name or password'],
    [['http://me:secret@localhost:3000'], 'user name or password'],
    [['ftp://localhost'], 'http or https'],
    [['localhost:3000'], 'http or https'],
    [['http://localhost', '--duration', 'soon'], 'received "soon"'],
    [['http://localhost', '--duration', '2h'], 'from 1s to 1h'],
    [['http://localhost', '--rate', '0'], 'from 1 to 500'],
    [['http://localhost', '--rate', '501'], 'from 1 to 500'],
    [['http://localhost', '--rate', '-1'], 'rate must be a number'],
    [['http://localhost', '--seed', '1.5'], 'whole number'],
    [['http://localhost', '--seed', ''], 'seed must be a number'],
    [[], 'missing required argument'],
    [['http://localhost', '--durration', '1s'], '--duration'],
  ] as const

  it.each(wrong)('refuses %j with status 2, saying %s', async (args, words) => {
    const { status, out, err } = await traffic(args)
    expect({ status, out }).toEqual({ status: 2, out: '' })
    expect(err).toContain(words)
    expect(err).not.toContain('secret')
  })
})

/** A port that was free a moment ago. */
async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
