/*
 * A daily limit and the bundled app: it holds over a deploy, over a kill, over a rolling deploy, and through
 * changes of everything that it is not about.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startApp, temporaryFolder, until, type StartedApp } from '../support/processes.js'

const limit = 3
const token = 'a token of sixteen characters'

/** Starts the app on a file, with a daily limit for each address unless said otherwise. */
async function started(path: string, fields = `limit: ${limit}, window: 1d`): Promise<StartedApp> {
  const config = join(temporaryFolder(), 'tallygate.yml')
  writeFileSync(config, `rules:\n  - { name: daily, key: ip, ${fields} }\n`)
  const app = await startApp({
    TALLYGATE_DATABASE: path,
    TALLYGATE_CONFIG: config,
    TALLYGATE_ADMIN_TOKEN: token,
  })
  onTestFinished(() => void app.end('SIGKILL'))
  return app
}

async function statusOf({ url }: StartedApp): Promise<number> {
  const response = await fetch(`${url}/api/ping`)
  await response.arrayBuffer()
  return response.status
}

/** Asks so often that nothing is left. */
async function exhaust(app: StartedApp): Promise<void> {
  for (let sent = 0; sent < limit; sent++) expect(await statusOf(app)).toBe(200)
  expect(await statusOf(app)).toBe(429)
}

const newPath = () => join(temporaryFolder(), 'counts.db')

/** What the one key of a file has used, as it was saved last. */
function savedUsage(path: string): number {
  const database = new Sqlite(path, { readonly: true })
  const newest = database.prepare('SELECT data FROM rule_chunks ORDER BY id DESC LIMIT 1').pluck()
  const data = newest.get() as Buffer | undefined
  database.close()
  // Behind the form, the hash and the time of the row.
  return data?.readUInt32LE(4 * (1 + 2 + 2)) ?? 0
}

describe('a daily limit that is used up', () => {
  it('is used up after SIGTERM and a start, with another limit too', async () => {
    const path = newPath()
    const app = await started(path)
    await exhaust(app)
    expect((await app.end()).code).toBe(0)
    const second = await started(path)
    expect(await statusOf(second)).toBe(429)
    await second.end()
    const third = await started(path, `limit: ${limit + 1}, window: 1d`)
    expect([await statusOf(third), await statusOf(third)]).toEqual([200, 429])
    const { stderr } = await third.end()
    expect(stderr).toContain('rule state was restored')
  })

  it('is used up after kill -9, some seconds later', async () => {
    const path = newPath()
    const app = await started(path)
    await exhaust(app)
    const usedAtMs = Date.now()
    await until(async () => savedUsage(path) === limit, 'the state to be saved')
    expect(Date.now() - usedAtMs).toBeLessThan(6_000)
    await app.end('SIGKILL')
    const second = await started(path)
    expect(await statusOf(second)).toBe(429)
    expect((await second.end()).stderr).toContain('the state of these rules is saved')
  })

  it('starts afresh where the rule is another', async () => {
    const path = newPath()
    const app = await started(path)
    await exhaust(app)
    await app.end()
    const second = await started(path, `limit: ${limit}, window: 2d`)
    expect(await statusOf(second)).toBe(200)
  })

  it('holds while one app takes over from another, and the second says that it does not persist', async () => {
    const path = newPath()
    const app = await started(path)
    const second = await started(path)
    await exhaust(app)
    const says = (text: string) => until(async () => second.stderr().includes(text), text)
    await says('another process saves the state of these rules')
    await says(`"pid":${app.child.pid}}`)
    expect(await statusOf(second)).toBe(200)
    await app.end()
    await says('the state of these rules is saved')
    expect(await statusOf(second)).toBe(429)
    await second.end()
    expect(await statusOf(await started(path))).toBe(429)
  })

  it('is used up after a start where its window was changed live', async () => {
    const path = newPath()
    const app = await started(path)
    const patched = await fetch(`${app.url}/admin/rules/daily`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ window: '2d' }),
    })
    expect(await patched.json()).toMatchObject({ restarted: true })
    await exhaust(app)
    await app.end()
    expect(await statusOf(await started(path))).toBe(429)
  })

  it('is held against the same keys, by their ids too', async () => {
    const path = newPath()
    const idsOf = async (app: StartedApp) => {
      const headers = { authorization: `Bearer ${token}` }
      const response = await fetch(`${app.url}/admin/keys?rule=daily`, { headers })
      const { heaviest } = (await response.json()) as { heaviest: { id: string }[] }
      return heaviest.map(({ id }) => id)
    }
    const ids: string[][] = []
    for (let turn = 0; turn < 2; turn++) {
      const app = await started(path)
      await statusOf(app)
      ids.push(await idsOf(app))
      await app.end()
    }
    expect(ids[0]).toHaveLength(1)
    expect(ids[1]).toEqual(ids[0])
  })
})
