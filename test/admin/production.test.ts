/*
 * The bundled app as it ships: what it says of its admin routes, and who gets at them.
 */
import { expect, it, onTestFinished } from 'vitest'
import { startApp } from '../support/processes.js'

const production = { NODE_ENV: 'production', SESSION_SECRET: 'b7d04c9e15fa42c8', TRUST_PROXY: '1' }

it('SEC-03: in production without an admin token nothing is there, and the start says so', async () => {
  const app = await startApp({ ...production, TALLYGATE_ADMIN_TOKEN: '' })
  onTestFinished(() => void app.end())
  expect(app.stdout()).toContain('set TALLYGATE_ADMIN_TOKEN to open it')
  for (const path of [
    '/admin',
    '/admin/stats',
    '/admin/stats/history',
    '/admin/audit',
    '/admin/keys?rule=ip',
  ]) {
    for (const authorization of ['', 'Bearer ', 'Bearer undefined', 'Bearer null']) {
      const response = await fetch(app.url + path, { headers: { authorization } })
      expect([response.status, await response.text()]).toEqual([
        404,
        expect.stringContaining('"Not found"'),
      ])
    }
  }
})

it('a limit that is changed is in force in the bundled app, after a restart too', async () => {
  const token = 'a4d1f6c2b9e85073'
  const app = await startApp({ TALLYGATE_ADMIN_TOKEN: token })
  const patch = await fetch(`${app.url}/admin/rules/ip`, {
    method: 'PATCH',
    body: '{"limit": 1}',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  })
  expect(await patch.json()).toMatchObject({ limit: 1, restarted: false, persisted: true })
  const ping = async (url: string) => (await fetch(`${url}/api/ping`)).status
  expect([await ping(app.url), await ping(app.url)]).toEqual([200, 429])
  const { persistence } = await app.stats()
  expect((await app.end()).code).toBe(0)
  const again = await startApp({ TALLYGATE_DATABASE: persistence.path ?? '' })
  onTestFinished(() => void again.end())
  expect([await ping(again.url), await ping(again.url)]).toEqual([200, 429])
})
