/*
 * What must hold of the packed package under any Node.js that it is for: every entry loads both ways, and
 * does its work. One suite, declared once for the Node.js that runs the tests and once for each other.
 */
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { pack, scratchProject, type Packed } from './packed.js'
import { root, run, type Finished } from './processes.js'
import { traceCounts, tracesOf } from './traces.js'

const programs = join(root, 'test/packaging/programs')

/** A scratch project with the programs that use the package, ready once `beforeAll` has run. */
export interface UsedPackage {
  packed(): Packed
  project(): string
  /** Runs a program of the project by a Node.js, in its folder. */
  start(node: string, name: string, ...args: string[]): Promise<Finished>
}

export function usePacked(types: readonly string[] = []): UsedPackage {
  let packed: Packed | null = null
  let project: string | null = null
  const made = <T>(value: T | null): T => {
    if (value === null) throw new Error('The package is packed by beforeAll')
    return value
  }
  beforeAll(async () => {
    packed = await pack()
    project = await scratchProject(packed, types)
    for (const name of readdirSync(programs)) cpSync(join(programs, name), join(project, name))
  })
  return {
    packed: () => made(packed),
    project: () => made(project),
    start: (node, name, ...args) => run(node, [name, ...args], {}, made(project)).finished,
  }
}

/** @param node the path of a Node.js; its major version is `major`. */
export function itWorksUnder(node: string, major: string, used: UsedPackage): void {
  it(`the program is Node.js ${major}`, async () => {
    const { stdout } = await run(node, ['--version']).finished
    expect(stdout).toMatch(new RegExp(`^v${major}\\.`))
  })

  it.each(['imported.mjs', 'required.cjs'])('%s has every entry, without a word', async (name) => {
    const { code, stdout, stderr } = await used.start(node, name)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const { names, ...told } = JSON.parse(stdout) as { names: Record<string, string[]> }
    expect(told).toEqual({
      decisions: [true, false, true],
      scope: 'instance',
      version: used.packed().manifest.version,
    })
    const { exports } = used.packed().manifest
    const entries = Object.keys(exports).filter((entry) => !entry.endsWith('.json'))
    expect(Object.keys(names)).toEqual(entries)
    expect(entries.filter((entry) => names[entry]?.length === 0)).toEqual([])
    expect(names['.']).toEqual(expect.arrayContaining(['TallygateError', 'tallygate']))
  })

  it('the limiter agrees with every step of the traces', async () => {
    const algorithms = Object.keys(traceCounts)
    const files = algorithms.map((name) => join(root, `test/vectors/${name}.json`))
    const steps = algorithms.flatMap(tracesOf).flatMap((trace) => trace.steps)
    const { code, stdout, stderr } = await used.start(node, 'traces.mjs', ...files)
    expect({ code, stderr, stdout }).toEqual({ code: 0, stderr: '', stdout: `${steps.length}` })
  })

  it('a gate without a database guards an Express app', async () => {
    const { code, stdout, stderr } = await used.start(node, 'served.mjs')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const policy = '"ip";q=2;w=3600'
    expect(JSON.parse(stdout)).toEqual([
      [200, policy],
      [200, policy],
      [429, policy],
      [200, null],
    ])
  })
}
