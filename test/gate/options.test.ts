/*
 * What a gate is made of: options and a configuration file, each fault named with what would be right.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Request, Response } from 'express'
import { describe, expect, it } from 'vitest'
import type { Decision } from '../../src/core/decision.js'
import { readConfig } from '../../src/gate/config-file.js'
import { checkOptions, type GateOptions } from '../../src/gate/options.js'
import { tallygate } from '../../src/index.js'
import { compileRules } from '../../src/core/rule.js'
import { temporaryFolder } from '../support/processes.js'
import { ipRule, messageOf } from '../support/units/limits.js'

const rules = [ipRule()]
const refusal = (options: object) => messageOf(() => checkOptions(options))

function fileOf(text: string): string {
  const path = join(temporaryFolder(), 'tallygate.yml')
  writeFileSync(path, text)
  return path
}

describe('options', () => {
  it.each([null, undefined, 'tallygate.yml', 5])('are not %j', (options) => {
    const message = messageOf(() => checkOptions(options as never))
    expect(message).toContain('options must be an object: received')
  })

  it('a token that is no text is refused by name, not shown', () => {
    const token = 1234567890123456
    expect(refusal({ rules, adminToken: token })).toContain('adminToken: it must be text')
    expect(refusal({ rules, adminToken: token })).not.toContain(String(token))
  })

  it.each([
    ['ruls', 'did you mean rules?'],
    ['timezone', 'did you mean timeZone?'],
    ['admin_token', 'did you mean adminToken?'],
    ['somethingElse', 'known options are config, rules'],
  ])('%s: %s', (name, advice) => {
    expect(refusal({ rules, [name]: 1 })).toContain(`unknown option "${name}": ${advice}`)
  })

  it.each(['store', 'storeTimeoutMs', 'onStoreFailure'])(
    '%s is refused as not supported yet',
    (name) => {
      expect(refusal({ rules, [name]: 1 })).toContain('this version does not support it yet')
    },
  )

  it('session gives its id at once, so an async function is refused at the start', () => {
    const message = refusal({ rules, session: async () => 'somebody' })
    expect(message).toContain('session must be a function of the request that gives the id at once')
    expect(message).toContain('received an async function')
  })

  it('that are undefined are the defaults', () => {
    const checked = checkOptions({ rules, store: undefined, config: undefined } as GateOptions)
    expect(checked).toMatchObject({ rules, adminToken: undefined, timeZone: undefined })
  })

  it('name rules once: in a file or in a list', () => {
    expect(refusal({})).toContain('give either config, a file, or rules, a list')
    expect(refusal({ rules, config: 'x.yml' })).toContain('give either config, a file, or rules')
  })

  it.each([
    ['config', 5],
    ['config', ''],
    ['database', ''],
    ['database', 5],
    ['session', 'id'],
    ['skip', true],
  ])('%s is not %j', (name, value) => {
    const given = name === 'config' ? {} : { rules }
    expect(refusal({ ...given, [name]: value })).toContain(`${name} must be a`)
  })

  it.each([
    ['TALLYGATE_WARN_NO_ADDRESS', 'silence must be a list of TALLYGATE_WARN_UNTRUSTED_FORWARD, '],
    [null, 'received null'],
    [['TALLYGATE_WARN_NO_ADRESS'], 'silence[0] must be one of TALLYGATE_WARN_UNTRUSTED_FORWARD, '],
    [['TALLYGATE_WARN_NO_ADDRESS', 'x'], 'silence[1] must be one of'],
    [['TALLYGATE_WARN_NO_ADDRESS', 'x'], 'received "x" (TALLYGATE_OPTION)'],
  ])('silence is not %j', (silence, message) => {
    expect(refusal({ rules, silence })).toContain(message)
  })

  it('exempt nobody unless said, and a wrong range stops the start by name', () => {
    expect(checkOptions({ rules }).exempt.isEmpty).toBe(true)
    expect(checkOptions({ rules, exempt: { ips: ['::1'] } }).exempt.contains('::1')).toBe(true)
    expect(refusal({ rules, exempt: { ips: ['10.0.0.0/33'] } })).toContain(
      'exempt.ips[0] must be an address such as 192.0.2.7',
    )
    expect(refusal({ rules, exempt: null })).toContain('exempt must be a mapping')
  })

  it.each([
    ['draft-9', ', did you mean draft-8?'],
    ['Legacy', ', did you mean legacy?'],
    ['standard-headers', ''],
    ['__proto__', ''],
    [null, ''],
    [false, ''],
    [['draft-8'], ''],
  ])('headers is not %j, and the dialects are named', (headers, advice) => {
    expect(refusal({ rules, headers })).toBe(
      'Cannot create a gate: headers must be one of draft-8, draft-6, legacy, off: ' +
        `received ${JSON.stringify(headers)}${advice} (TALLYGATE_OPTION)`,
    )
  })

  it.each([null, true, 'send', { status: 429 }])('onDecline is not %j', (onDecline) => {
    expect(refusal({ rules, onDecline })).toContain(
      `onDecline must be a function of request, response and decision: received ${JSON.stringify(onDecline)}`,
    )
  })

  it('onDecline may be written with the types of Express', () => {
    const onDecline = (_request: Request, response: Response, decision: Decision) =>
      response.status(503).json(decision.rule)
    expect(checkOptions({ rules, onDecline }).onDecline).toBe(onDecline)
  })

  it('refuse a weak token by the name of the option', () => {
    expect(refusal({ rules, adminToken: 'short' })).toContain('adminToken')
    expect(refusal({ rules, metricsToken: 'change-me-change-me' })).toContain('metricsToken')
  })

  it('refuse an unknown zone and impossible rules before anything is open', () => {
    const database = join(temporaryFolder(), 'x.db')
    expect(messageOf(() => tallygate({ rules, database, timeZone: 'Mars/Olympus' }))).toContain(
      'timeZone must be the IANA name of a time zone',
    )
    expect(messageOf(() => tallygate({ rules: [ipRule({ limit: -1 })], database }))).toContain(
      "rule 'ip': limit must be",
    )
  })
})

describe('a configuration file', () => {
  it('gives rules, zone and start of the week; options in code go before it', () => {
    const config = fileOf(
      'timeZone: UTC\nweekStartsOn: sunday\nrules: [{ name: ip, key: ip, limit: 5, window: 1m }]',
    )
    expect(checkOptions({ config })).toMatchObject({
      rules,
      timeZone: 'UTC',
      weekStartsOn: 'sunday',
    })
    expect(checkOptions({ config, weekStartsOn: 'monday' }).weekStartsOn).toBe('monday')
  })

  it('that ships is right', () => {
    const { rules: shipped } = readConfig('tallygate.yml')
    expect(compileRules(shipped).map(({ name, limit }) => [name, limit])).toEqual([
      ['global', 1000],
      ['ip', 400],
      ['session', 200],
      ['parse-url', 60],
    ])
  })

  it('reads on, off, yes and no as words, as YAML 1.2 does', () => {
    const config = fileOf('rules: [{ name: no, key: on, limit: 5, window: 1m, mode: off }]')
    expect(checkOptions({ config }).rules).toEqual([
      { name: 'no', key: 'on', limit: 5, window: '1m', mode: 'off' },
    ])
  })

  it('names who is exempt; options in code go before it', () => {
    const inFile = 'exempt:\n  ips: [10.0.0.0/8, 2001:db8::/32, "::1"]\n'
    const config = fileOf(`rules: [{ name: ip, key: ip, limit: 5, window: 1m }]\n${inFile}`)
    const holds = (options: GateOptions, address: string) =>
      checkOptions(options).exempt.contains(address)
    for (const address of ['10.1.2.3', '2001:db8::5', '::1']) {
      expect(holds({ config }, address)).toBe(true)
      expect(holds({ config, exempt: { ips: ['192.0.2.7'] } }, address)).toBe(false)
    }
    expect(holds({ config, exempt: { ips: ['192.0.2.7'] } }, '192.0.2.7')).toBe(true)
  })

  it.each(['exempt:', 'exempt: { ips: [fd00::] }', 'exempt: { ips: 10.0.0.0/8 }'])(
    '%s stops the start',
    (line) => {
      const rule = 'rules: [{ name: ip, key: ip, limit: 5, window: 1m }]'
      const config = fileOf(`${rule}\n${line}\n`)
      expect(messageOf(() => checkOptions({ config }))).toContain('Cannot exempt clients: exempt')
    },
  )

  it('that is missing is named, with the reason', () => {
    const message = messageOf(() => readConfig('/nowhere/tallygate.yml'))
    expect(message).toContain('/nowhere/tallygate.yml')
    expect(message).toContain('ENOENT')
    expect(message).toContain('(TALLYGATE_CONFIG_FILE)')
  })

  it.each(['rules: [', 'a: 1\na: 2', 'rules:\n\t- x', '{{'])(
    '%j is no YAML, with the place',
    (text) => {
      const message = messageOf(() => readConfig(fileOf(text)))
      expect(message).toMatch(/as YAML: .* line \d+/)
      expect(message.split('\n').length).toBe(1)
    },
  )

  it.each(['', '[]', 'rules', '5', 'null'])('%j is no mapping', (text) => {
    expect(messageOf(() => readConfig(fileOf(text)))).toContain(
      'it must hold a mapping with a list',
    )
  })

  it.each([
    ['rulez: []', 'did you mean rules?'],
    ['timezone: UTC', 'did you mean timeZone?'],
    ['exemt: { ips: [] }', 'did you mean exempt?'],
    ['adminTokenForAll: x', 'known fields are rules, exempt, timeZone, weekStartsOn'],
  ])('%s: %s', (text, advice) => {
    expect(messageOf(() => readConfig(fileOf(text)))).toContain(advice)
  })

  it('without rules is refused', () => {
    const config = fileOf('timeZone: UTC')
    expect(messageOf(() => tallygate({ config }))).toContain('rules must be a list of one or more')
  })
})
