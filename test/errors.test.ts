/*
 * The tables of errors and warnings and docs/errors.md: each code has a section and each section a code,
 * and the example in it is what the code really says.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readEnvironment } from '../src/app/environment.js'
import { startApp } from '../src/app/main.js'
import { systemClock } from '../src/core/clock.js'
import { errorCodes, shown, TallygateError, type ErrorCode } from '../src/core/errors.js'
import { compileRules } from '../src/core/rule.js'
import { warningCodes, Warnings } from '../src/core/warnings.js'
import { readConfig } from '../src/gate/config-file.js'
import { tallygate } from '../src/index.js'
import { openDatabase } from '../src/sqlite/database.js'
import { runTraffic } from '../src/traffic/traffic.js'
import { temporaryFolder } from './support/processes.js'
import { collectingLogger } from './support/units/log.js'
import { readSources } from './support/units/imports.js'

const doc = readFileSync(new URL('../docs/errors.md', import.meta.url), 'utf8')
const sections = new Map(
  doc
    .split(/^## /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')).trim(), section]),
)
const codes: readonly string[] = [...Object.keys(errorCodes), ...warningCodes]
const rule = { name: 'login', limit: 5, window: '1m' }

/** How each example of the document comes about. */
const examples: Record<ErrorCode, () => unknown> = {
  TALLYGATE_CONFIG_FILE: () => readConfig('/etc/tallygate.yml'),
  TALLYGATE_CONFIG_FIELD: () => {
    const path = join(temporaryFolder(), 'tallygate.yml')
    writeFileSync(path, 'timezone: UTC')
    return readConfig(path)
  },
  TALLYGATE_RULE_FIELD: () => compileRules([{ ...rule, limt: 5 }]),
  TALLYGATE_RULE_VALUE: () => compileRules([{ ...rule, limit: '10' }]),
  TALLYGATE_RULE_NAME: () => compileRules([rule, { ...rule, name: 'ip' }, rule]),
  TALLYGATE_OPTION: () => tallygate({ rules: [rule], adminTokn: 'x' } as never),
  TALLYGATE_ENVIRONMENT: () => readEnvironment({ PORT: 'http' }),
  TALLYGATE_SECRET: () => readEnvironment({ TALLYGATE_ADMIN_TOKEN: 'hunter2' }),
  TALLYGATE_DATABASE: () => openDatabase('/proc/tallygate.db', 0),
  TALLYGATE_LISTEN: async () => {
    const server = await listening()
    const { port } = server.address() as AddressInfo
    const database = join(temporaryFolder(), 'x.db')
    const environment = { PORT: String(port), TALLYGATE_DATABASE: database, LOG_LEVEL: 'silent' }
    const running = await startApp(environment, () => {})
    await running.close()
  },
  TALLYGATE_UNREACHABLE: async () => {
    const server = await listening()
    const { port } = server.address() as AddressInfo
    server.close()
    await runTraffic({ url: `http://127.0.0.1:${port}`, clock: systemClock })
  },
}

async function listening(): Promise<Server> {
  const server = createServer()
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

async function thrownBy(call: () => unknown): Promise<TallygateError> {
  try {
    await call()
  } catch (error) {
    if (error instanceof TallygateError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

/** Ports and folders of this run as they stand in the document. */
function asDocumented(message: string): string {
  return message
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:3000')
    .replace(/\/\S*\/tallygate-test-\w+/, '/etc')
}

function quotedIn(code: string): string {
  const lines = (sections.get(code) ?? '').matchAll(/^> (.*)$/gm)
  return [...lines].map(([, line]) => line).join(' ')
}

describe('docs/errors.md', () => {
  it('has a section for each code', () => {
    expect(codes.filter((code) => !sections.has(code))).toEqual([])
  })

  it('has no section without a code', () => {
    expect([...sections.keys()].filter((title) => !codes.includes(title))).toEqual([])
  })

  it.each([...sections])('%s says when, why it hurts and what to do', (_, section) => {
    for (const part of ['**When.** ', '**Why it hurts.** ', '**What to do.** ']) {
      expect(section).toContain(part)
    }
  })

  it.each(Object.entries(examples))(
    'the example of %s is what is really said',
    async (code, call) => {
      const error = await thrownBy(call)
      expect(error.code).toBe(code)
      expect(quotedIn(code)).toBe(asDocumented(error.message))
    },
  )

  it.each(warningCodes)('the example of %s is what is really logged', (code) => {
    const { logger, lines } = collectingLogger()
    new Warnings(logger).note(code)
    expect(quotedIn(code)).toBe(lines[0]?.message)
  })
})

describe('the table of warnings', () => {
  it('has no code that nothing notes', () => {
    const texts = [...readSources()].filter(([path]) => path !== 'core/warnings.ts')
    const unused = warningCodes.filter(
      (code) => !texts.some(([, text]) => text.includes(`note('${code}')`)),
    )
    expect(unused).toEqual([])
  })
})

describe('the table of errors', () => {
  it('has no code that nothing reports', () => {
    const texts = [...readSources()].filter(([path]) => path !== 'core/errors.ts')
    const unused = Object.keys(errorCodes).filter(
      (code) => !texts.some(([, text]) => text.includes(`'${code}'`)),
    )
    expect(unused).toEqual([])
  })

  it('has every code that a source names', () => {
    const named = [...readSources().values()].flatMap((text) =>
      [...text.matchAll(/TallygateError\(\s*'(\w+)'/g)].map(([, code]) => code ?? ''),
    )
    expect(named.length).toBeGreaterThan(15)
    expect(named.filter((code) => !Object.hasOwn(errorCodes, code))).toEqual([])
  })
})

describe('a received value', () => {
  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [NaN, 'NaN'],
    [-0, '0'],
    [10n, '10'],
    ['10', '"10"'],
    ['a\nb', '"a\\nb"'],
    [{ a: 1 }, '{"a":1}'],
    [() => 1, 'a function'],
    [Symbol('x'), 'a symbol'],
  ])('%# is shown unambiguously', (value, text) => {
    expect(shown(value)).toBe(text)
  })

  it('is cut at 80 characters', () => {
    expect(shown('x'.repeat(1_000))).toHaveLength(80)
  })
})
