/*
 * The package as a user gets it: what is in the tarball, what the tools that judge packages say of it, and
 * a scratch project that imports it, requires it, runs it and compiles against it.
 */
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isExecutable, scratchProject, withoutFolder, write } from '../support/packed.js'
import { root, run, temporaryFolder, until } from '../support/processes.js'
import { itWorksUnder, usePacked } from '../support/use-packed.js'

const types = ['node', 'express', 'express4'].map((name) => `@types/${name}`)
const used = usePacked([...types, 'express4'])
const home = () => join(used.project(), 'node_modules/tallygate')
const textOf = (file: string) => readFileSync(join(home(), file), 'utf8')
const tool = (path: string, ...args: string[]) =>
  run(process.execPath, [join(root, 'node_modules', path), ...args], {}, used.project()).finished

describe('the tarball', () => {
  it('holds what runs and what is read, and nothing else', () => {
    const kinds = [
      /^dist\/[\w/-]+\.(js|d\.ts)$/,
      /^dashboards\/json\/[\w-]+\.json$/,
      /^dashboards\/provisioning\/[\w/-]+\.yml$/,
      /^prometheus\/[\w/.-]+\.yml$/,
      /^docs\/[\w-]+\.md$/,
      /^docs\/[\w-]+\.schema\.json$/,
      /^(README|CHANGELOG|CONTRIBUTING)\.md$/,
      /^(LICENSE|package\.json|tallygate\.yml)$/,
    ]
    const { files } = used.packed()
    expect(files.filter((file) => !kinds.some((kind) => kind.test(file)))).toEqual([])
    for (const kind of kinds) expect(files.some((file) => kind.test(file))).toBe(true)
    for (const file of ['LICENSE', 'README.md', 'CHANGELOG.md', 'docs/errors.md']) {
      expect(files).toContain(file)
    }
  })

  it('has every file that its manifest names', () => {
    const { files, manifest } = used.packed()
    const targets = Object.values(manifest.exports).flatMap((target) =>
      typeof target === 'string' ? target : Object.values(target),
    )
    for (const target of [...targets, ...Object.values(manifest.bin)]) {
      expect(files).toContain(posix.normalize(target))
    }
  })

  it('has every page that one of its pages links to', () => {
    const { files } = used.packed()
    const missing = files
      .filter((file) => file.endsWith('.md'))
      .flatMap((file) =>
        // Pictures stay behind: they are most of what a tarball would weigh.
        [...textOf(file).matchAll(/(?<!!)\[[^\]]*\]\((?!https?:|#)([^)#\s]+)/g)].map(
          ([, to = '']) => posix.normalize(posix.join(dirname(file), to)),
        ),
      )
      .filter((file) => !files.includes(file))
    expect(missing).toEqual([])
  })

  it('tells nothing of where it was made, and points to no source that it lacks', () => {
    for (const file of used.packed().files) {
      const text = textOf(file)
      expect(text).not.toContain(root)
      expect(text).not.toContain('sourceMappingURL')
    }
  })

  it('is small', () => {
    expect(used.packed().sizeBytes).toBeLessThan(400_000)
    expect(used.packed().files.length).toBeLessThan(500)
  })
})

describe('the tools that judge packages', () => {
  it('publint finds nothing', async () => {
    const { code, stdout } = await tool('publint/src/cli.js', '--strict', used.packed().tarball)
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('All good!') })
  })

  it('attw finds the types of every entry, by import', async () => {
    const args = ['--profile', 'esm-only', '--format', 'json', used.packed().tarball]
    const { code, stdout } = await tool('@arethetypeswrong/cli/dist/index.js', ...args)
    expect(code).toBe(0)
    const { analysis } = JSON.parse(stdout) as { analysis: { entrypoints: object } }
    expect(Object.keys(analysis.entrypoints)).toEqual(Object.keys(used.packed().manifest.exports))
  })
})

describe('a project with the package', () => {
  const [major = ''] = process.versions.node.split('.')
  itWorksUnder(process.execPath, major, used)

  it('runs the first lines of the README', async () => {
    const [, snippet = ''] = /^```ts\n(.*?)^```/ms.exec(textOf('README.md')) ?? []
    const [fixed, free] = ['app.listen(3000)', 'app.listen(0, told)']
    expect(snippet).toContain(fixed)
    // It has no types to take away, and a port of its own would be in somebody's way.
    const told = 'function told() { process.stdout.write(`${this.address().port}\\n`) }'
    const folder = temporaryFolder()
    symlinkSync(join(used.project(), 'node_modules'), join(folder, 'node_modules'))
    write(folder, 'tallygate.yml', textOf('tallygate.yml'))
    write(folder, 'app.mjs', `${snippet.replace(fixed, free)}\n${told}\n`)
    const app = run(process.execPath, ['app.mjs'], {}, folder)
    await until(async () => app.stdout().endsWith('\n'), 'the app to listen')
    const url = `http://127.0.0.1:${app.stdout().trim()}`
    const answer = await fetch(url)
    expect([answer.status, await answer.text()]).toEqual([200, 'hello'])
    expect(answer.headers.get('ratelimit-policy')).toContain('"ip";q=400;w=60')
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('tallygate_requests_total')
    expect(existsSync(join(folder, 'data/tallygate.db'))).toBe(true)
    expect((await app.end()).stderr).toBe('')
  })

  it('runs its command', async () => {
    const path = join(home(), 'dist/cli/main.js')
    expect(isExecutable(path)).toBe(true)
    // As npm links it.
    const command = join(temporaryFolder(), 'tallygate')
    symlinkSync(path, command)
    const { code, stdout } = await run(command, ['check', join(home(), 'tallygate.yml')]).finished
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('ip') })
    const version = await run(command, ['--version']).finished
    expect(version.stdout.trim()).toBe(used.packed().manifest.version)
  })

  it('is told in one line that the database module was not compiled', async () => {
    const project = temporaryFolder()
    await run('cp', ['-R', `${used.project()}/.`, project]).finished
    withoutFolder(project, 'better-sqlite3', 'build')
    const begin = run(process.execPath, ['database.mjs', 'x.db'], {}, project)
    const { message } = JSON.parse((await begin.finished).stdout) as { message: string }
    expect(message).toMatch(
      /^Cannot open the database \S+: better-sqlite3 was not compiled when installed; npm rebuild better-sqlite3 compiles it \(TALLYGATE_DATABASE\)$/,
    )
    // Without a database nothing asks for the module.
    const without = await run(process.execPath, ['imported.mjs'], {}, project).finished
    expect({ code: without.code, stderr: without.stderr }).toEqual({ code: 0, stderr: '' })
  })
})

describe('a TypeScript project with the package', () => {
  /** What the compiler says of a file under these options; nothing where it is content. */
  const compile = async (
    file: string,
    text: string,
    options: object,
    project = used.project(),
  ): Promise<string> => {
    const compilerOptions = {
      target: 'es2023',
      lib: ['es2023'],
      types: ['node'],
      strict: true,
      skipLibCheck: false,
      noEmit: true,
      ...options,
    }
    const include = [write(project, file, text)]
    const config = write(project, 'tsconfig.json', JSON.stringify({ compilerOptions, include }))
    const { code, stdout } = await tool('typescript/bin/tsc', '-p', config)
    expect(code === 0).toBe(stdout === '')
    return stdout
  }

  /** The type test of the sources, as a user would have written it. */
  const publicApi = () => {
    const text = readFileSync(join(root, 'test/types/public-api.ts'), 'utf8')
    const entry = /'(?:\.\.\/)+src\/(?:(cluster|limiter|testing|url)\/)?index\.js'/g
    expect(text.match(entry)).toHaveLength(5)
    return text.replaceAll(entry, (_match, name?: string) =>
      name === undefined ? `'tallygate'` : `'tallygate/${name}'`,
    )
  }

  const resolutions = [
    { module: 'nodenext', moduleResolution: 'nodenext' },
    { module: 'esnext', moduleResolution: 'bundler' },
  ]

  it.each(resolutions)('compiles the type test under $moduleResolution', async (options) => {
    expect(await compile('public-api.mts', publicApi(), options)).toBe('')
    const exact = { ...options, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true }
    expect(await compile('public-api.mts', publicApi(), exact)).toBe('')
  })

  it.each(resolutions)('sees a wrong option under $moduleResolution', async (options) => {
    const text = `import { tallygate } from 'tallygate'\ntallygate({ rules: [], limt: 5 })\n`
    expect(await compile('wrong.mts', text, options)).toContain('limt')
  })

  it('compiles as CommonJS too, where Node.js can require it', async () => {
    const text = `import { tallygate, type Gate } from 'tallygate'
import limiterEntry = require('tallygate/limiter')
export const gate: Gate = tallygate({ config: 'tallygate.yml' })
export const { createLimiter } = limiterEntry\n`
    const options = { module: 'nodenext', moduleResolution: 'nodenext' }
    expect(await compile('common.cts', text, options)).toBe('')
  })

  it('needs the types of Node.js alone beside it', async () => {
    const project = await scratchProject(used.packed(), ['@types/node'])
    const text = `export * from 'tallygate'
export { createLimiter } from 'tallygate/limiter'
export { createUrlParser } from 'tallygate/url'
export { manualClock } from 'tallygate/testing'\n`
    const options = { module: 'nodenext', moduleResolution: 'nodenext' }
    expect(await compile('alone.mts', text, options, project)).toBe('')
  })
})
