/*
 * What the documents say holds: pages written from tables are as the tables are, snippets compile, links
 * lead somewhere.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { format, resolveConfig } from 'prettier'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { root, run } from '../support/processes.js'
import { answerSchema } from '../../src/admin/schema.js'
import { configurationPage, metricsPage } from './pages.js'
import { statisticsPage } from './statistics-page.js'

const read = (path: string) => readFileSync(join(root, path), 'utf8')

const documents = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]

describe('the documents', () => {
  it('docs/configuration.md has every field of a rule', async () => {
    await expect(await configurationPage()).toMatchFileSnapshot(join(root, 'docs/configuration.md'))
  })

  it('docs/metrics.md has every metric', async () => {
    await expect(await metricsPage()).toMatchFileSnapshot(join(root, 'docs/metrics.md'))
  })

  it('docs/statistics.md has an answer of each admin route', async () => {
    await expect(await statisticsPage()).toMatchFileSnapshot(join(root, 'docs/statistics.md'))
  })

  it('docs/admin.schema.json has every field of their answers', async () => {
    const path = join(root, 'docs/admin.schema.json')
    const text = await format(JSON.stringify(answerSchema()), {
      ...(await resolveConfig(path)),
      parser: 'json',
    })
    await expect(text).toMatchFileSnapshot(path)
  })

  it.each(documents)('%s has no link to a file that is not there', (path) => {
    const links = [...read(path).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(([, to = '']) => to)
    const missing = links.filter((to) => !existsSync(join(root, dirname(path), to)))
    expect(missing).toEqual([])
  })

  it('the TypeScript of README.md and docs/library.md compiles against the package', async () => {
    const text = `${read('README.md')}\n${read('docs/library.md')}`
    const snippets = [...text.matchAll(/^```ts\n(.*?)^```/gms)]
    expect(snippets.length).toBeGreaterThanOrEqual(6)
    const folder = join(root, 'build/readme')
    mkdirSync(folder, { recursive: true })
    onTestFinished(() => rmSync(folder, { recursive: true }))
    for (const [index, [, code = '']] of snippets.entries()) {
      writeFileSync(join(folder, `snippet-${index}.ts`), code)
    }
    const options = { extends: '../../tsconfig.json', include: ['*.ts'] }
    const relaxed = { noUnusedLocals: false, noUnusedParameters: false }
    const config = JSON.stringify({ ...options, compilerOptions: relaxed })
    writeFileSync(join(folder, 'tsconfig.json'), config)
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const { code, stdout } = await run(process.execPath, [compiler, '-p', folder]).finished
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
  })

  it('the YAML of the README is the one that ships', () => {
    const [, yaml = ''] = /^```yaml\n# tallygate\.yml\n(.*?)^```/ms.exec(read('README.md')) ?? []
    const rules = (text: string) =>
      [...text.matchAll(/- (\{.*\})/g)].map(([, rule = '']) => rule.replaceAll(/\s+/g, ' '))
    expect(rules(yaml)).toEqual(rules(read('tallygate.yml')))
    expect(rules(yaml)).toHaveLength(4)
  })

  it('SQL-14: the guide says where a database must not lie, and compose has a named volume for it', () => {
    for (const place of ['NFS', 'SMB', 'bind mount', 'named volume']) {
      expect(read('docs/database.md')).toContain(place)
    }
    const { services, volumes } = parse(read('docker-compose.yml')) as {
      services: { app: { volumes: string[] } }
      volumes: Record<string, unknown>
    }
    const [name = ''] =
      services.app.volumes.find((each) => each.endsWith(':/app/data'))?.split(':') ?? []
    expect(Object.keys(volumes)).toContain(name)
  })

  it.each(documents)('%s names no place that only its writer has', (path) => {
    expect(read(path)).not.toMatch(/\/(work|root|home)\/|registry\.npmjs|deb\.debian/)
  })
})
