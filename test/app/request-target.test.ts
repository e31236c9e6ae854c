import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { startApp } from '../support/processes.js'

it('whatever a request aims at or expects, it is guarded and counted', async () => {
  const app = await startApp()
  onTestFinished(() => void app.end('SIGKILL'))
  const heads = [
    'GET /api/ping HTTP/1.1',
    'GET http://other.test/api/ping?x=1 HTTP/1.1',
    'GET x:// HTTP/1.1',
    'GET http://[::1/ HTTP/1.1',
    'GET http://a:99999999/ HTTP/1.1',
    'OPTIONS * HTTP/1.1',
    'GET /api/ping HTTP/1.1\r\nExpect: something',
  ]
  const seen: string[] = []
  for (const head of heads) {
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1').setEncoding('latin1')
    let text = ''
    socket.on('data', (chunk: string) => (text += chunk))
    socket.write(`${head}\r\nHost: test\r\nConnection: close\r\n\r\n`)
    await once(socket, 'close')
    seen.push(`${text.slice(9, 12)} ${/^ratelimit-policy:/im.test(text) ? 'guarded' : 'not'}`)
  }
  const found = '200 guarded'
  const unknown = '404 guarded'
  expect(seen).toEqual([found, found, unknown, unknown, unknown, unknown, found])
  expect((await app.stats()).totals.requests).toBe(heads.length)
})

it('a mount written in other letters is the same route to the metrics', async () => {
  const token = 'c0ffee5c0ffee5c0ffee5'
  const app = await startApp({ TALLYGATE_ADMIN_TOKEN: token })
  onTestFinished(() => void app.end('SIGKILL'))
  for (const path of ['/admin/stats', '/ADMIN/stats', '/aDmin/stats']) {
    await fetch(app.url + path, { headers: { authorization: `Bearer ${token}` } })
  }
  const text = await (await fetch(`${app.url}/metrics`)).text()
  const routes = new Set(text.match(/route="[^"]*stats"/g))
  expect([...routes]).toEqual(['route="/admin/stats"'])
})
