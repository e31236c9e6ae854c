/*
 * What a start says of rules that are right and may still surprise.
 */
import { describe, expect, it } from 'vitest'
import { compileRules } from '../../src/core/rule.js'
import { Warnings } from '../../src/core/warnings.js'
import { noteRules, noteWorkers } from '../../src/gate/notices.js'
import { distUrl, runModule } from '../support/units/dist.js'
import { collectingLogger } from '../support/units/log.js'

function noted(rule: object): [level: string, fields: object][] {
  const lines: [string, object][] = []
  const at = (level: string) => (fields: object) => void lines.push([level, fields])
  const logger = { info: at('info'), warn: at('warn'), error: at('error') }
  noteRules(compileRules([{ name: 'ip', key: 'ip', limit: 5, window: '1m', ...rule }]), logger)
  return lines
}

it('says nothing of an ordinary rule', () => {
  expect(noted({})).toEqual([])
})

it('warns of a window that may have been meant in seconds', () => {
  expect(noted({ window: 60 })).toEqual([['warn', { rule: 'ip', windowMs: 60, meant: '60s' }]])
})

it('tells the most bytes that a rolling window may take', () => {
  const rule = { algorithm: 'rolling-window', maxEntries: 1_000, maxKeys: 100 }
  expect(noted(rule)).toEqual([['info', { rule: 'ip', bytesMax: 1_000 * 16 + 100 * 64 }]])
})

describe('TALLYGATE_WARN_SEVERAL_WORKERS', () => {
  function countOf(environment: Record<string, string>, isClusterWorker = false): number {
    const { logger, lines } = collectingLogger()
    const warnings = new Warnings(logger)
    noteWorkers(environment, isClusterWorker, warnings)
    expect(lines).toHaveLength(warnings.countOf('TALLYGATE_WARN_SEVERAL_WORKERS'))
    return lines.length
  }

  it('is said once in a worker of node:cluster, and in one of several of PM2', () => {
    expect(countOf({}, true)).toBe(1)
    expect(countOf({ NODE_APP_INSTANCE: '3' }, true)).toBe(1)
    expect(countOf({ NODE_APP_INSTANCE: '1' })).toBe(1)
    expect(countOf({ NODE_APP_INSTANCE: '0', instances: '4' })).toBe(1)
  })

  it('is not said of a single process, also where PM2 numbers it', () => {
    expect(countOf({})).toBe(0)
    expect(countOf({ NODE_APP_INSTANCE: '' })).toBe(0)
    expect(countOf({ NODE_APP_INSTANCE: '0' })).toBe(0)
    expect(countOf({ NODE_APP_INSTANCE: '0', instances: '1' })).toBe(0)
    expect(countOf({ instances: '4' })).toBe(0)
  })

  it('is said by a real worker when its gate is made, and not by the primary', async () => {
    const { status, stdout, stderr } = await runModule(`
      import cluster from 'node:cluster'
      import { tallygate } from ${JSON.stringify(distUrl('index.js'))}
      const rules = [{ name: 'ip', key: 'ip', limit: 5, window: '1m' }]
      const warn = ({ code }) => process.stdout.write(process.env.ROLE + ' ' + code + '\\n')
      const logger = { info() {}, error() {}, warn }
      process.env.ROLE ??= 'primary'
      const gate = tallygate({ rules, logger })
      await gate.close()
      if (cluster.isPrimary) {
        cluster.setupPrimary({ exec: '', execArgv: process.execArgv, args: process.argv.slice(1) })
        cluster.fork({ ROLE: 'worker' })
      } else process.disconnect()`)
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: 'worker TALLYGATE_WARN_SEVERAL_WORKERS\n',
      stderr: '',
    })
  })
})
