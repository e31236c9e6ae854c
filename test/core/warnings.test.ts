/*
 * A warning is logged once and counted each time, whether it is logged or not.
 */
import { describe, expect, it } from 'vitest'
import { warningCodes, Warnings, warningSentences } from '../../src/core/warnings.js'
import { collectingLogger } from '../support/units/log.js'

describe('a warning', () => {
  it.each(warningCodes)('%s is logged once and counted each time', (code) => {
    const { logger, lines } = collectingLogger()
    const warnings = new Warnings(logger)
    for (let turn = 0; turn < 3; turn++) warnings.note(code)
    expect(lines).toEqual([
      {
        level: 'warn',
        fields: { code, section: `docs/errors.md#${code.toLowerCase()}` },
        message: `${warningSentences[code]} (${code})`,
      },
    ])
    expect(warningCodes.map((each) => warnings.countOf(each))).toEqual(
      warningCodes.map((each) => (each === code ? 3 : 0)),
    )
  })

  it('that is silenced is counted and not logged, and silences no other', () => {
    const { logger, lines } = collectingLogger()
    const warnings = new Warnings(logger, ['TALLYGATE_WARN_NO_ADDRESS'])
    warnings.note('TALLYGATE_WARN_NO_ADDRESS')
    warnings.note('TALLYGATE_WARN_MOUNTED_TWICE')
    expect(lines.map(({ fields }) => fields)).toMatchObject([
      { code: 'TALLYGATE_WARN_MOUNTED_TWICE' },
    ])
    expect(warnings.countOf('TALLYGATE_WARN_NO_ADDRESS')).toBe(1)
  })

  it('of one gate says nothing of another', () => {
    const { logger, lines } = collectingLogger()
    for (let gate = 0; gate < 2; gate++) {
      new Warnings(logger).note('TALLYGATE_WARN_MOUNTED_TWICE')
    }
    expect(lines).toHaveLength(2)
  })

  it.each(warningCodes)('%s says what to do, in one line', (code) => {
    expect(code).toMatch(/^TALLYGATE_WARN(_[A-Z]+)+$/)
    expect(warningSentences[code]).toMatch(/^[A-Z][^\n]+: [^\n]+[a-z]$/)
  })
})
