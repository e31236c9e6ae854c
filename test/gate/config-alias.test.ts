import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { TallygateError } from '../../src/core/errors.js'
import { compileRules } from '../../src/core/rule.js'
import { readConfig } from '../../src/gate/config-file.js'
import { temporaryFolder } from '../support/processes.js'

it('aliases that lead nowhere, in a circle or to too much are refused in one line', () => {
  const nine = (name: string) => `[${Array.from({ length: 9 }, () => name).join(',')}]`
  const files = [
    'rules: *nobody\n',
    'rules: &r\n  - *r\n',
    `a: &a ${nine('x')}\nb: &b ${nine('*a')}\nc: &c ${nine('*b')}\nrules: ${nine('*c')}\n`,
  ]
  for (const [index, text] of files.entries()) {
    const path = join(temporaryFolder(), `${index}.yml`)
    writeFileSync(path, text)
    const read = () => compileRules(readConfig(path).rules)
    expect(read).toThrow(TallygateError)
    expect(read).toThrow(/^[^\n]+$/)
  }
})
