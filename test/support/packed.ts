/*
 * The package as it is published: packed by npm from a copy of the sources, so that nothing is in it by the
 * accident of an earlier build and no other suite sees `dist` rebuilt under it, and unpacked into
 * `node_modules` of a scratch project.
 *
 * Unpacked, not installed: an install would fetch the dependencies again and compile SQLite for a minute
 * and a half. They are linked instead, those alone that package.json declares, so that an import of
 * anything else fails as it would for a user. What npm adds to that is the link of the command.
 */
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { root, run, temporaryFolder, type Finished } from './processes.js'

export interface Manifest {
  readonly name: string
  readonly version: string
  readonly bin: Record<string, string>
  readonly exports: Record<string, string | Record<string, string>>
  readonly dependencies: Record<string, string>
}

export interface Packed {
  /** The path of the tarball. */
  readonly tarball: string
  readonly sizeBytes: number
  /** Every file in it, as a sorted path below the package. */
  readonly files: readonly string[]
  readonly manifest: Manifest
}

/** What a folder of the project has that is no source. */
const left = new Set(['.git', 'admin-token', 'build', 'data', 'dist', 'node_modules', 'test'])

/** Runs `npm pack`, with the build that belongs to it. */
export async function pack(): Promise<Packed> {
  const copy = temporaryFolder()
  for (const name of readdirSync(root)) {
    if (!left.has(name)) cpSync(join(root, name), join(copy, name), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  const { stdout } = await succeed(run('npm', ['pack', '--json'], {}, copy).finished)
  // A build that talks does so before the list.
  const [told] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [
    { filename: string; size: number; files: { path: string }[] },
  ]
  return {
    tarball: join(copy, told.filename),
    sizeBytes: told.size,
    files: told.files.map(({ path }) => path).toSorted(),
    manifest: JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest,
  }
}

/**
 * A project with the package in its `node_modules`, a folder of its own.
 *
 * @param types packages of `node_modules` that a TypeScript project has beside its dependencies.
 */
export async function scratchProject(
  packed: Packed,
  types: readonly string[] = [],
): Promise<string> {
  const project = temporaryFolder()
  const folder = join(project, 'node_modules', packed.manifest.name)
  mkdirSync(folder, { recursive: true })
  const args = ['-xzf', packed.tarball, '-C', folder, '--strip-components=1']
  await succeed(run('tar', args).finished)
  for (const name of [...Object.keys(packed.manifest.dependencies), ...types]) link(project, name)
  return project
}

/** Where a package of a project is, and where the linked one of ours is. */
const pathIn = (project: string, name: string) => join(project, 'node_modules', name)

function link(project: string, name: string): void {
  mkdirSync(dirname(pathIn(project, name)), { recursive: true })
  symlinkSync(pathIn(root, name), pathIn(project, name))
}

/** Replaces a linked package by a copy of it, less one folder. */
export function withoutFolder(project: string, name: string, folder: string): void {
  const place = pathIn(project, name)
  rmSync(place)
  cpSync(pathIn(root, name), place, {
    recursive: true,
    filter: (source) => source !== join(pathIn(root, name), folder),
  })
  const manifest = readFileSync(join(place, 'package.json'), 'utf8')
  const { dependencies } = JSON.parse(manifest) as Pick<Manifest, 'dependencies'>
  for (const dependency of Object.keys(dependencies)) link(project, dependency)
}

/** Writes a file of a project, and gives its path. */
export function write(project: string, name: string, text: string): string {
  const path = join(project, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  return path
}

export function isExecutable(path: string): boolean {
  return (statSync(path).mode & 0o111) === 0o111
}

async function succeed(finished: Promise<Finished>): Promise<Finished> {
  const end = await finished
  if (end.code !== 0) throw new Error(`It failed: ${JSON.stringify(end)}`)
  return end
}
