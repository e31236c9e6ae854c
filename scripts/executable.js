// Makes a built command executable: the compiler writes plain files, and npx sets the bit only once.
import { chmodSync } from 'node:fs'

for (const file of process.argv.slice(2)) chmodSync(file, 0o755)
