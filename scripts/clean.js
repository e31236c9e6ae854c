// Removes the build output named on the command line, so that a deleted source leaves nothing behind.
import { rmSync } from 'node:fs'

for (const folder of process.argv.slice(2)) rmSync(folder, { recursive: true, force: true })
