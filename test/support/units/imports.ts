/*
 * Reads the imports of source files and judges them: which folder may import which, where a package may be
 * used, and whether files import each other in a circle. Pure over a map of texts, so that a made-up edge
 * can be put in and must be found.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Import {
  /** Path below src, such as `core/rule.ts`. */
  readonly from: string
  /** Path below src, or the name of a package. */
  readonly to: string
  readonly isOwn: boolean
  /** Only types, which are gone when the code runs. */
  readonly isType: boolean
}

export type Sources = ReadonlyMap<string, string>

export function readSources(): Sources {
  const root = fileURLToPath(new URL('../../../src', import.meta.url))
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' })
  return new Map(
    names
      .filter((name) => name.endsWith('.ts'))
      .map((name) => [name, readFileSync(join(root, name), 'utf8')]),
  )
}

const statement =
  /^(?:import|export)(?<type>\s+type)?\s+(?:[^'"`;]*?\sfrom\s+)?['"](?<to>[^'"]+)['"]|import\(\s*['"](?<late>[^'"]+)['"]\s*\)/gm

export function importsOf(sources: Sources): Import[] {
  return [...sources].flatMap(([from, text]) =>
    [...withoutComments(text).matchAll(statement)].map(({ groups = {} }) => {
      const to = groups['to'] ?? groups['late'] ?? ''
      const isOwn = to.startsWith('.')
      return {
        from,
        to: isOwn ? normalize(join(dirname(from), to)).replace(/\.js$/, '.ts') : packageOf(to),
        isOwn,
        isType: groups['type'] !== undefined,
      }
    }),
  )
}

function packageOf(specifier: string): string {
  return specifier.startsWith('@')
    ? specifier.split('/', 2).join('/')
    : (specifier.split('/')[0] ?? '')
}

/** Block comments hold examples that import things; so do line comments. */
export function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
}

/** Each may import those before it. */
const chain = ['core', 'stores', 'limiter', 'express', 'admin', 'gate', 'app', 'cli']
const sides = new Set(['metrics', 'tally', 'sqlite', 'cluster'])
const contracts = new Set([
  'cluster/report.ts',
  'tally/archive.ts',
  'tally/slots.ts',
  'tally/retention.ts',
  'url/failure.ts',
  'url/observer.ts',
])

const folderOf = (path: string) => (path.includes('/') ? (path.split('/')[0] ?? '') : 'root')

/** Why an import is not allowed; null where it is. */
export function fault({ from, to, isOwn, isType }: Import): string | null {
  if (!isOwn) return packageFault(from, to)
  const [source, target] = [folderOf(from), folderOf(to)]
  if (source === target || source === 'root') return null
  const edge = `${from} imports ${to}`
  if (source === 'testing' || source === 'traffic') {
    return target === 'core' ? null : `${edge}: ${source} may import core alone`
  }
  if (target === 'testing' || target === 'root') return `${edge}: nobody may import ${target}`
  if (source === 'url') {
    return ['core', 'sqlite'].includes(target) ? null : `${edge}: url may import core and sqlite`
  }
  if (target === 'traffic') return source === 'cli' ? null : `${edge}: traffic is for the cli`
  // Types alone: the primary of a cluster must load no metrics.
  if (source === 'cluster' && to === 'metrics/table.ts' && isType) return null
  if (sides.has(source)) {
    return target === 'core' || contracts.has(to) ? null : `${edge}: only core and contracts`
  }
  if (!chain.includes(source)) return `${edge}: ${source} has no place in the order`
  if (target === 'url') return source === 'app' ? null : `${edge}: url is for the app`
  if (sides.has(target)) {
    return chain.indexOf(source) >= chain.indexOf('admin') ? null : `${edge}: only from admin on`
  }
  return chain.indexOf(target) < chain.indexOf(source) ? null : `${edge}: against the order`
}

const only: Readonly<Record<string, (from: string) => boolean>> = {
  'prom-client': (from) => from === 'metrics/prometheus.ts',
  'better-sqlite3': (from) => folderOf(from) === 'sqlite',
  parse5: (from) => folderOf(from) === 'url',
  '@exodus/bytes': (from) => folderOf(from) === 'url',
  express: (from) => ['express', 'admin', 'app'].includes(folderOf(from)),
  'express-session': (from) => ['express', 'admin', 'app'].includes(folderOf(from)),
}

function packageFault(from: string, name: string): string | null {
  const mayUse = Object.hasOwn(only, name) ? only[name] : undefined
  return mayUse === undefined || mayUse(from)
    ? null
    : `${from} imports ${name}, which has its place`
}

/** One circle of imports that are there when the code runs, as a path; null where there is none. */
export function circle(imports: readonly Import[]): string | null {
  const edges = new Map<string, string[]>()
  for (const { from, to, isOwn, isType } of imports) {
    if (isOwn && !isType) edges.set(from, [...(edges.get(from) ?? []), to])
  }
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]): string | null => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file].join(' → ')
    if (done.has(file)) return null
    for (const to of edges.get(file) ?? []) {
      const found = visit(to, [...path, file])
      if (found !== null) return found
    }
    done.add(file)
    return null
  }
  for (const file of edges.keys()) {
    const found = visit(file, [])
    if (found !== null) return found
  }
  return null
}

/** Where time is read past the clock. */
export function clockReads(sources: Sources): string[] {
  return [...sources].flatMap(([path, text]) => {
    if (path === 'core/clock.ts') return []
    const found = withoutComments(text).match(
      /\bDate\.now\b|\bperformance\.(?:now|timeOrigin)\b|\bnew Date\(\s*\)|\bprocess\.hrtime\b|(?<!new )\bDate\(\s*\)/g,
    )
    return (found ?? []).map((read) => `${path} reads the time by ${read}`)
  })
}
