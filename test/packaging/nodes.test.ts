/*
 * The packed package under the later versions of Node.js that it is for. `npm run nodes` fetches them into
 * build/nodes; they are too large to come with every `npm ci`.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../support/processes.js'
import { describeUnless } from '../support/tools.js'
import { itWorksUnder, usePacked } from '../support/use-packed.js'

const nodeOf = (major: string) => join(root, `build/nodes/node_modules/node${major}/bin/node`)
const majors = ['22', '24']
const missing = majors.filter((major) => !existsSync(nodeOf(major)))
const reason =
  missing.length === 0 ? null : `Node.js ${missing.join(' and ')} not in build/nodes: npm run nodes`

describeUnless(reason, 'the package under later versions of Node.js', () => {
  const used = usePacked()

  describe.each(majors)('under Node.js %s', (major) => {
    itWorksUnder(nodeOf(major), major, used)

    const isThisOne = process.versions.node.startsWith(`${major}.`)
    it.skipIf(isThisOne)(
      'a database module of another Node.js is said in one line, with what to do',
      async () => {
        const { code, stdout, stderr } = await used.start(nodeOf(major), 'database.mjs', 'x.db')
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
        const { name, code: kind, message } = JSON.parse(stdout) as Record<string, string>
        expect([name, kind]).toEqual(['TallygateError', 'TALLYGATE_DATABASE'])
        expect(message).toMatch(
          new RegExp(
            `^Cannot open the database /\\S+/x\\.db: better-sqlite3 was compiled for another Node\\.js ` +
              `than v${major}\\.\\S+; npm rebuild better-sqlite3 compiles it \\(TALLYGATE_DATABASE\\)$`,
          ),
        )
      },
    )
  })
})
