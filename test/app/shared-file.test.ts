/*
 * Two apps on one file, as behind a balancer: whoever logs in at one has a session at the other, and whoever
 * logs out has none at either; and all requests are in the totals of both.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as passing } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApp, temporaryFolder, until, type StartedApp } from '../support/processes.js'

const rules = [{ name: 'session', key: 'session', limit: 100_000, window: '1h', absent: 'skip' }]

async function begin({ url }: StartedApp): Promise<string> {
  const response = await fetch(`${url}/api/session`, { method: 'POST' })
  await response.arrayBuffer()
  return response.headers.get('set-cookie')?.split(';')[0] ?? ''
}

async function end({ url }: StartedApp, cookie: string): Promise<void> {
  const response = await fetch(`${url}/api/session`, { method: 'DELETE', headers: { cookie } })
  await response.arrayBuffer()
}

/** Whether the limit of sessions applies to a request: it carries one that is known. */
async function hasSession({ url }: StartedApp, cookie: string): Promise<boolean> {
  const response = await fetch(`${url}/api/ping`, { headers: { cookie } })
  await response.arrayBuffer()
  return response.headers.get('ratelimit')?.includes('"session"') === true
}

describe('two apps on one file', () => {
  const folder = temporaryFolder()
  let one: StartedApp
  let other: StartedApp

  beforeAll(async () => {
    const config = join(folder, 'tallygate.yml')
    writeFileSync(config, JSON.stringify({ rules }))
    const settings = {
      TALLYGATE_CONFIG: config,
      TALLYGATE_DATABASE: join(folder, 'counts.db'),
      SESSION_SECRET: 'the-same-for-all-of-them',
    }
    ;[one, other] = await Promise.all([startApp(settings), startApp(settings)])
  })
  afterAll(async () => {
    await Promise.all([one.end(), other.end()])
  })

  it('a session that begins at one is known at the other at once', async () => {
    // Both have written of late, and so know that they are not alone.
    for (const app of [one, other]) await begin(app)
    await passing(2_200)
    for (let turn = 0; turn < 10; turn++) {
      const [here, there] = turn % 2 === 0 ? [one, other] : [other, one]
      const cookie = await begin(here)
      expect(await hasSession(there, cookie)).toBe(true)
    }
  })

  it('a session that ends at one has ended at the other at once, where that knows that it is not alone', async () => {
    const cookie = await begin(one)
    expect([await hasSession(one, cookie), await hasSession(other, cookie)]).toEqual([true, true])
    await end(other, cookie)
    expect([await hasSession(one, cookie), await hasSession(other, cookie)]).toEqual([false, false])
  })

  it('has ended within about a second where that does not know yet, and stays ended', async () => {
    const folderOfTwo = temporaryFolder()
    const settings = {
      TALLYGATE_CONFIG: join(folder, 'tallygate.yml'),
      TALLYGATE_DATABASE: join(folderOfTwo, 'counts.db'),
      SESSION_SECRET: 'the-same-for-all-of-them',
    }
    const alone = await startApp(settings)
    const cookie = await begin(alone)
    await passing(1_500)
    const late = await startApp(settings)
    await end(late, cookie)
    await until(async () => !(await hasSession(alone, cookie)), 'the session to have ended', 3_000)
    await passing(1_500)
    expect(await hasSession(alone, cookie)).toBe(false)
    await Promise.all([alone.end(), late.end()])
  })

  it('SQL-02: each request is in the totals of both', async () => {
    const requestsOf = async (app: StartedApp) => Number((await app.stats()).totals.requests)
    const before = await requestsOf(one)
    for (let turn = 0; turn < 40; turn++) await hasSession(turn % 2 === 0 ? one : other, '')
    const totals = async () => Promise.all([one, other].map(requestsOf))
    await until(async () => new Set([...(await totals()), before + 40]).size === 1, 'both to agree')
    expect(await totals()).toEqual([before + 40, before + 40])
  })
})
