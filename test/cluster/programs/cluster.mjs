/*
 * A primary that forks workers, each an Express app behind one gate, on one port that they share and one of
 * its own, by which a test can reach it. Prints a line of JSON for each worker that listens. Reads lines on
 * its input: `fork` for one more worker.
 */
import cluster from 'node:cluster'
import { createInterface } from 'node:readline'

const dist = (path) => import(new URL(`../../../dist/${path}`, import.meta.url).href)
const { DATABASE, WORKERS = '3', COLLECT = 'yes', GATES = '1', ADMIN_TOKEN, PORT } = process.env

if (cluster.isPrimary) {
  if (COLLECT === 'yes') {
    const { collect } = await dist('cluster/index.js')
    collect()
    collect()
  }
  for (let count = 0; count < Number(WORKERS); count++) cluster.fork()
  cluster.on('message', (worker, message) => {
    if (message?.listens === undefined) return
    process.stdout.write(`${JSON.stringify({ id: worker.id, ...message.listens })}\n`)
  })
  cluster.on('exit', (worker, code, signal) => {
    process.stdout.write(`${JSON.stringify({ id: worker.id, ended: signal ?? code })}\n`)
  })
  createInterface({ input: process.stdin }).on('line', () => cluster.fork())
  process.on('SIGTERM', () => process.exit())
} else {
  const { default: express } = await import('express')
  const { tallygate } = await dist('index.js')
  const rules = [
    { name: 'global', key: 'global', limit: 1_000_000, window: '1h' },
    {
      name: 'ip',
      key: 'ip',
      limit: 25,
      window: '1h',
      candidates: [{ limit: 5 }],
    },
  ]
  const gates = Array.from({ length: Number(GATES) }, () =>
    tallygate({
      rules,
      database: DATABASE,
      adminToken: ADMIN_TOKEN,
      silence: ['TALLYGATE_WARN_SEVERAL_WORKERS'],
    }),
  )
  const app = express()
  app.set('trust proxy', 1)
  gates.forEach((gate, index) => {
    app.get(`/${index}/metrics`, gate.metrics)
    app.use(`/${index}/admin`, gate.admin)
  })
  app.get('/hang', (request, response) => {
    response.send('soon')
    response.on('close', () => {
      const endMs = Date.now() + Number(request.query.ms)
      while (Date.now() < endMs);
    })
  })
  app.get('/listeners', (_request, response) => {
    response.json({ process: process.listenerCount('message') })
  })
  gates.forEach((gate, index) => app.use(`/${index}/app`, gate.middleware))
  app.use((_request, response) => response.send(String(cluster.worker.id)))
  const shared = app.listen(Number(PORT), '127.0.0.1')
  const own = app.listen({ port: 0, host: '127.0.0.1', exclusive: true })
  const both = [shared, own]
  await Promise.all(both.map((server) => new Promise((done) => server.once('listening', done))))
  process.send({
    listens: { pid: process.pid, shared: shared.address().port, own: own.address().port },
  })
  const end = async () => {
    for (const server of both) server.close()
    for (const server of both) server.closeIdleConnections()
    for (const gate of gates) await gate.close()
    process.exit()
  }
  process.on('SIGTERM', () => void end())
}
