/*
 * Writes the boards to `dashboards/json`, or with `--check` writes nothing and exits 1, naming
 * each file that differs from its source. Run from the repository root, as the npm scripts do:
 * the compiled file lies in `build/` and could not know where the root is.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { boardFiles, drifting } from './boards.js'

const folder = join('dashboards', 'json')

if (process.argv.includes('--check')) {
  for (const name of drifting(committed)) {
    process.stderr.write(`${join(folder, name)} differs from its source: run npm run dashboards\n`)
    process.exitCode = 1
  }
} else {
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of boardFiles()) writeFileSync(join(folder, name), text)
}

function committed(name: string): string | null {
  try {
    return readFileSync(join(folder, name), 'utf8')
  } catch {
    // A file that cannot be read differs, and is named like any other.
    return null
  }
}
