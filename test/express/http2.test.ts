/*
 * The handlers behind Node's HTTP/2 server, whose compatible requests and responses they are typed for: many
 * requests share a connection there, and each is limited and counted by itself.
 */
import { once } from 'node:events'
import { connect, createServer, type ClientHttp2Session, type Http2Server } from 'node:http2'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { createGate } from '../../src/gate/gate.js'
import { manualClock } from '../../src/testing/index.js'
import { until } from '../support/processes.js'
import { startMs } from '../support/server.js'
import { ipRule } from '../support/units/limits.js'

async function connected(server: Http2Server): Promise<ClientHttp2Session> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  return client
}

async function statusOf(client: ClientHttp2Session): Promise<number> {
  const stream = client.request({ ':path': '/' })
  const [headers] = (await once(stream, 'response')) as [{ ':status': number }]
  stream.resume()
  await once(stream, 'close')
  return headers[':status']
}

it('limits and counts every request of a connection by HTTP/2', async () => {
  const gate = createGate({
    rules: [ipRule({ limit: 3 })],
    clock: manualClock(startMs),
    skipFailed: true,
  })
  const server = createServer((request, response) => {
    const [asked, answered] = [request, response] as unknown as [IncomingMessage, ServerResponse]
    gate.middleware(asked, answered, () => void answered.end('ok'))
  })
  const client = await connected(server)
  const seen = await Promise.all(Array.from({ length: 5 }, () => statusOf(client)))
  expect(seen.toSorted((a, b) => a - b)).toEqual([200, 200, 200, 429, 429])
  await until(async () => (await gate.stats()).totals.requests === 5, 'all are counted')
  expect((await gate.stats()).totals).toMatchObject({ allowed: 3, declined: 2 })
  client.destroy()
  await gate.close()
  expect((await gate.stats()).totals.requests).toBe(5)
})
