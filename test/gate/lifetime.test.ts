/*
 * A gate keeps nothing alive: a process that made one, used it and closed its server ends, whether it closed
 * the gate or not.
 */
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../support/processes.js'
import { distUrl, runModule } from '../support/units/dist.js'

const rules = `[{ name: 'ip', key: 'ip', limit: 5, window: '1h' },
  { name: 'log', key: 'ip', limit: 5, window: '7d', algorithm: 'rolling-window' }]`

/** Serves one request through a gate, closes the server, and goes on as `end` says. */
const served = (database: string, end: string) => `
  import express from 'express'
  import { tallygate } from '${distUrl('index.js')}'
  const gate = tallygate({ rules: ${rules}, database: ${database} })
  const app = express()
  app.use(gate.middleware)
  app.get('/', (request, response) => response.end('served'))
  const server = app.listen(0, '127.0.0.1', async () => {
    const response = await fetch('http://127.0.0.1:' + server.address().port, { headers: { connection: 'close' } })
    console.log(await response.text())
    await gate.stats()
    server.close()
    ${end}
  })`

const limiterAlone = `
  import { createLimiter } from '${distUrl('limiter/index.js')}'
  const limiter = createLimiter({ rules: ${rules} })
  if (limiter.decide({ ip: '203.0.113.7' }).allowed) console.log('served')`

describe('MEM-01: a process ends by itself', () => {
  const file = JSON.stringify(join(temporaryFolder(), 'tallies.db'))
  it.each([
    ['with a limiter alone', limiterAlone],
    ['with a limiter closed twice', `${limiterAlone}\nlimiter.close()\nlimiter.close()`],
    ['with tallies in memory', served('undefined', '')],
    ['with tallies in SQLite', served(file, '')],
    ['with a gate closed twice', served(file, 'await gate.close()\nawait gate.close()')],
  ])('%s', async (_, source) => {
    const { status, stdout, stderr } = await runModule(source)
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'served\n', stderr: '' })
  })
})
