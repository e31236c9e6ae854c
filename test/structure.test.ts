/*
 * Which file may import which. Every guard is shown a made-up fault first, so that it is known to find
 * one; then it judges the sources.
 */
import { describe, expect, it } from 'vitest'
import { distUrl, runModule } from './support/units/dist.js'
import {
  circle,
  clockReads,
  fault,
  importsOf,
  readSources,
  type Sources,
} from './support/units/imports.js'

const sources = readSources()
const faultsOf = (of: Sources) =>
  importsOf(of)
    .map(fault)
    .filter((found) => found !== null)
const withText = (path: string, text: string) => new Map([...sources, [path, text]])

describe('imports', () => {
  it('are found in every form', () => {
    const text = `
      /* import a from '../limiter/limiter.js' */
import b from '../core/a.js'
import { c, type d } from '../core/b.js'
import {
  e,
} from '../core/c.js'
import type { f } from '../core/d.js'
import '../core/e.js'
export { g } from '../core/f.js'
export * from '../core/g.js'
export type { h } from '../core/h.js'
const i = await import('../core/i.js')
import j from '@scope/name/deep'`
    const found = importsOf(new Map([['stores/x.ts', text]]))
    expect(found.map(({ to }) => to)).toEqual([
      ...['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name) => `core/${name}.ts`),
      'core/i.ts',
      '@scope/name',
    ])
    expect(found.filter(({ isType }) => isType).map(({ to }) => to)).toEqual([
      'core/d.ts',
      'core/h.ts',
    ])
    expect(importsOf(sources).length).toBeGreaterThan(150)
  })

  it('of our own lead to files that are there', () => {
    const lost = importsOf(sources).filter(({ to, isOwn }) => isOwn && !sources.has(to))
    expect(lost.filter(({ to }) => !to.endsWith('.json'))).toEqual([])
  })

  it.each([
    ['core/x.ts', '../stores/store.js'],
    ['core/x.ts', '../testing/index.js'],
    ['stores/x.ts', '../limiter/limiter.js'],
    ['limiter/x.ts', '../express/http.js'],
    ['limiter/x.ts', '../tally/slots.js'],
    ['express/x.ts', '../metrics/table.js'],
    ['express/x.ts', '../gate/gate.js'],
    ['admin/x.ts', '../gate/gate.js'],
    ['gate/x.ts', '../app/app.js'],
    ['app/x.ts', '../cli/main.js'],
    ['metrics/x.ts', '../limiter/limiter.js'],
    ['metrics/x.ts', '../tally/tally.js'],
    ['tally/x.ts', '../sqlite/database.js'],
    ['sqlite/x.ts', '../tally/tally.js'],
    ['testing/x.ts', '../limiter/index.js'],
    ['traffic/x.ts', '../limiter/index.js'],
    ['url/x.ts', '../express/http.js'],
    ['url/x.ts', '../metrics/table.js'],
    ['gate/x.ts', '../url/index.js'],
    ['metrics/x.ts', '../url/parser.js'],
    ['app/x.ts', '../traffic/traffic.js'],
    ['url/x.ts', '../limiter/limiter.js'],
    ['gate/x.ts', '../url/reach.js'],
    ['new-folder/x.ts', '../core/rule.js'],
    ['gate/x.ts', '../index.js'],
    ['cluster/x.ts', '../gate/gate.js'],
    ['cluster/x.ts', '../tally/tally.js'],
    ['cluster/x.ts', '../metrics/recorder.js'],
    ['limiter/x.ts', '../cluster/channel.js'],
    ['gate/x.ts', 'prom-client'],
    ['metrics/recorder.ts', 'prom-client'],
    ['gate/x.ts', 'better-sqlite3'],
    ['app/x.ts', 'better-sqlite3'],
    ['gate/x.ts', 'express'],
    ['limiter/x.ts', 'express-session'],
  ])('the guard finds %s importing %s', (path, specifier) => {
    for (const text of [`import x from '${specifier}'`, `export type { X } from '${specifier}'`]) {
      expect(faultsOf(withText(path, text)).length).toBeGreaterThan(faultsOf(sources).length)
    }
  })

  it('the guard lets the cluster have the types of metrics, and nothing that runs', () => {
    const faults = (text: string) => faultsOf(withText('cluster/x.ts', text)).length
    const before = faultsOf(sources).length
    expect(faults(`import type { Unit } from '../metrics/table.js'`)).toBe(before)
    expect(faults(`import { metrics } from '../metrics/table.js'`)).toBe(before + 1)
  })

  it('point one way, and each package has its place', () => {
    expect(faultsOf(sources)).toEqual([])
  })

  it('run in no circle', () => {
    const bad = withText('core/clock.ts', `import './rule.js'`)
    const clock = `import { systemClock } from './clock.js'`
    expect(circle(importsOf(new Map([...bad, ['core/duration.ts', clock]])))).toContain(
      'core/clock.ts',
    )
    expect(circle(importsOf(withText('core/clock.ts', `import '../core/clock.js'`)))).not.toBeNull()
    expect(circle(importsOf(sources))).toBeNull()
  })
})

describe('time', () => {
  it.each(['Date.now()', 'performance.now()', 'new Date()', 'Date.now', 'process.hrtime()'])(
    'the guard finds %s',
    (read) => {
      expect(clockReads(new Map([['core/x.ts', `const now = ${read}`]])).length).toBe(1)
    },
  )

  it('is read in core/clock.ts alone', () => {
    expect(clockReads(new Map([['core/x.ts', '// Date.now()\nnew Date(timeMs)']]))).toEqual([])
    expect(clockReads(sources)).toEqual([])
  })
})

/** The addresses of all modules that loading `path` of dist brings in. */
const loadedBy = async (path: string): Promise<string[]> => {
  const hook = `export async function resolve(specifier, context, next) {
    const found = await next(specifier, context)
    process._rawDebug(found.url)
    return found
  }`
  const { status, stdout, stderr } = await runModule(`
    import { createRequire, register } from 'node:module'
    register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hook)}))
    await import(${JSON.stringify(distUrl(path))})
    const { cache } = createRequire(import.meta.url)
    for (const name of Object.keys(cache)) process.stdout.write(name + '\\n')`)
  expect(status).toBe(0)
  return [...stdout.split('\n'), ...stderr.split('\n')].filter((line) => line !== '')
}

const packagesIn = (loaded: readonly string[]) =>
  new Set(loaded.flatMap((url) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []))

describe('what is loaded', () => {
  it('the limiter brings in no Express, SQLite, Prometheus, log or YAML', async () => {
    const loaded = await loadedBy('limiter/index.js')
    expect(loaded.some((url) => url.endsWith('/dist/limiter/limiter.js'))).toBe(true)
    expect([...packagesIn(loaded)].toSorted()).toEqual(['ipaddr.js', 'zod'])
    expect(
      loaded.filter((url) => /dist\/(express|sqlite|metrics|tally|gate|app|admin)\//.test(url)),
    ).toEqual([])
  })

  it('the parser of URLs brings in no Express and no Prometheus', async () => {
    const loaded = await loadedBy('url/index.js')
    expect(loaded.some((url) => url.endsWith('/dist/url/page-parser.js'))).toBe(true)
    for (const name of ['express', 'express-session', 'prom-client', 'pino', 'yaml']) {
      expect([...packagesIn(loaded)]).not.toContain(name)
    }
    expect(
      loaded.filter((url) => /dist\/(express|limiter|metrics|tally|gate|app|admin)\//.test(url)),
    ).toEqual([])
  })

  it('the gate brings in nothing that fetches or reads pages', async () => {
    const loaded = await loadedBy('index.js')
    const contracts = /dist\/url\/(failure|observer)\.js$/
    const ofPages = loaded.filter((url) => /dist\/url\//.test(url) && !contracts.test(url))
    expect(ofPages).toEqual([])
    for (const name of ['undici', 'parse5', 'encoding-sniffer']) {
      expect([...packagesIn(loaded)]).not.toContain(name)
    }
  })

  it('what a primary collects with brings in no package, and of ours what adds up', async () => {
    const loaded = await loadedBy('cluster/index.js')
    expect(loaded.some((url) => url.endsWith('/dist/cluster/collector.js'))).toBe(true)
    expect([...packagesIn(loaded)]).toEqual([])
    const ours = loaded.flatMap((url) => /dist\/([\w/-]+)\.js$/.exec(url)?.[1] ?? [])
    expect(ours.filter((path) => !/^(cluster\/|core\/(errors|windows)$)/.test(path))).toEqual([])
  })

  it('the testing helpers bring in nothing', async () => {
    expect([...packagesIn(await loadedBy('testing/index.js'))]).toEqual([])
  })

  it('the guard sees what the gate brings in', async () => {
    const packages = packagesIn(await loadedBy('index.js'))
    for (const name of ['better-sqlite3', 'prom-client', 'pino', 'yaml']) {
      expect([...packages]).toContain(name)
    }
  })
})
