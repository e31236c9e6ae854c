// Fetches the later versions of Node.js that tallygate is for into build/nodes, from the npm registry and
// without touching package.json: they are too large for every `npm ci`. With arguments, each of them then
// runs with those, such as `node scripts/nodes.js --version`.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const majors = ['22', '24']
const folder = fileURLToPath(new URL('../build/nodes', import.meta.url))
const system = process.platform === 'win32' ? 'win' : process.platform
const program = process.platform === 'win32' ? 'node.exe' : 'node'
const pathOf = (major) => join(folder, 'node_modules', `node${major}`, 'bin', program)

function run(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' })
  if (error !== undefined) throw error
  if (status !== 0) process.exit(status ?? 1)
}

const missing = majors.filter((major) => !existsSync(pathOf(major)))
if (missing.length > 0) {
  mkdirSync(folder, { recursive: true })
  const packages = majors.map((major) => `node${major}@npm:node-${system}-${process.arch}@${major}`)
  const quiet = ['--no-save', '--no-package-lock', '--ignore-scripts', '--loglevel=error']
  run('npm', ['install', '--prefix', folder, ...quiet, ...packages])
}

const args = process.argv.slice(2)
if (args.length > 0) for (const major of majors) run(pathOf(major), args)
