/*
 * What a start says of rules that are right and may still surprise.
 */
import { expect, it } from 'vitest'
import { compileRules } from '../../src/core/rule.js'
import { noteRules } from '../../src/gate/notices.js'

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
