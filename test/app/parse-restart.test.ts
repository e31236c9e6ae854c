/*
 * The built app as a process: its pages outlive it, and what it may fetch is set by its environment.
 */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  cli,
  run,
  startApp,
  temporaryFolder,
  until,
  type StartedApp,
} from '../support/processes.js'
import { page, webServer } from '../support/web.js'

const parse = async (app: StartedApp, url: string) => {
  const response = await fetch(`${app.url}/api/parse?url=${encodeURIComponent(url)}`)
  return (await response.json()) as Record<string, unknown>
}

const pageCount = (path: string): number => {
  const connection = new Sqlite(path, { readonly: true })
  const count = connection.prepare('SELECT count(*) FROM pages').pluck().get() as number
  connection.close()
  return count
}

describe('the pages of the day', () => {
  it('are there after the app has ended and started again', async () => {
    const web = await webServer(page('<title>T</title>'))
    const env = {
      TALLYGATE_DATABASE: join(temporaryFolder(), 'counts.db'),
      TALLYGATE_URL_ALLOW: `127.0.0.1/32:${web.port}`,
    }
    const url = `http://127.0.0.1:${web.port}/`
    const first = await startApp(env)
    const fetched = await parse(first, url)
    expect(fetched).toMatchObject({ title: 'T', cached: false })
    expect((await first.end()).code).toBe(0)
    const second = await startApp(env)
    onTestFinished(() => void second.end())
    expect(await parse(second, url)).toEqual({ ...fetched, cached: true })
    expect(web.requests).toHaveLength(1)
  })

  it('that is still being fetched when the app is told to end is given up, with an answer', async () => {
    const web = await webServer(() => undefined)
    const app = await startApp({ TALLYGATE_URL_ALLOW: `127.0.0.1/32:${web.port}` })
    const url = encodeURIComponent(`http://127.0.0.1:${web.port}/`)
    const answer = fetch(`${app.url}/api/parse?url=${url}`)
    await until(async () => web.requests.length === 1, 'the fetch')
    const [{ status }, { code }] = await Promise.all([answer, app.end()])
    expect([status, code]).toEqual([502, 0])
  })

  it('are written within a second or so, and outlive a kill', async () => {
    const web = await webServer(page('<title>T</title>'))
    const path = join(temporaryFolder(), 'counts.db')
    const env = { TALLYGATE_DATABASE: path, TALLYGATE_URL_ALLOW: `127.0.0.1/32:${web.port}` }
    const url = `http://127.0.0.1:${web.port}/`
    const first = await startApp(env)
    await parse(first, url)
    await until(async () => pageCount(path) === 1, 'the page to be written', 3_000)
    await first.end('SIGKILL')
    const second = await startApp(env)
    onTestFinished(() => void second.end())
    expect(await parse(second, url)).toMatchObject({ title: 'T', cached: true })
  })

  it('that a wrong clock dated ahead are deleted when the app starts', async () => {
    const path = join(temporaryFolder(), 'counts.db')
    await (await startApp({ TALLYGATE_DATABASE: path })).end()
    const connection = new Sqlite(path)
    const insert = connection.prepare("INSERT INTO pages VALUES (?, ?, 2, '{}')")
    insert.run('ahead', Date.now() + 3_600_000)
    insert.run('old', Date.now() - 86_400_000)
    insert.run('fresh', Date.now())
    connection.close()
    const app = await startApp({ TALLYGATE_DATABASE: path })
    onTestFinished(() => void app.end())
    await until(async () => pageCount(path) < 3, 'the two to go')
    expect(pageCount(path)).toBe(1)
  })
})

describe('TALLYGATE_URL_ALLOW', () => {
  it.each(['127.0.0.1', '127.0.0.1/32', '10.0.0.0/8:80, nonsense', '127.0.0.1/33:80', '*:80'])(
    'as %s stops the start with one line',
    async (value) => {
      const env = { PORT: '0', TALLYGATE_URL_ALLOW: value }
      const { code, stderr } = await run(process.execPath, [cli, 'serve'], env).finished
      expect(code).toBe(1)
      expect(stderr).toMatch(
        /^[^\n]*TALLYGATE_URL_ALLOW must be addresses or ranges, each with a port[^\n]*received "[^\n]*\(TALLYGATE_ENVIRONMENT\)\n$/,
      )
    },
  )

  it('is warned of by what it lets through; without it nothing inside is fetched', async () => {
    const web = await webServer(page('<title>Inside</title>'))
    const app = await startApp({
      TALLYGATE_URL_ALLOW: `127.0.0.1/32:1, [fd00::/8]:8080 10.0.0.7:80`,
    })
    const inside = await parse(app, `http://127.0.0.1:${web.port}/`)
    expect(inside).toMatchObject({ status: 403, title: 'Forbidden' })
    const { stderr } = await app.end()
    const warnings = stderr.split('\n').filter((line) => line.includes('TALLYGATE_URL_ALLOW'))
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain('127.0.0.1/32:1, [fd00::/8]:8080, 10.0.0.7:80')
    const { stderr: quiet } = await (await startApp()).end()
    expect(quiet).not.toContain('TALLYGATE_URL_ALLOW')
    expect(web.connectionCount).toBe(0)
  })
})
