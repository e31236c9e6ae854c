// A gate in Express over HTTP, without a database. Prints the statuses and one field of its answers.
import { once } from 'node:events'
import { createServer } from 'node:http'
import express from 'express'
import { tallygate } from 'tallygate'

const gate = tallygate({ rules: [{ name: 'ip', key: 'ip', limit: 2, window: '1h' }] })
const app = express()
app.get('/metrics', gate.metrics)
app.use(gate.middleware)
app.get('/', (_request, response) => void response.send('ok'))
const server = createServer(app).listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${server.address().port}`
const seen = []
for (const path of ['/', '/', '/', '/metrics']) {
  const { status, headers } = await fetch(url + path)
  seen.push([status, headers.get('ratelimit-policy')])
}
server.closeAllConnections()
server.close()
await gate.close()
process.stdout.write(JSON.stringify(seen))
