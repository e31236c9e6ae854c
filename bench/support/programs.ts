/*
 * Which programs of the system a benchmark would need and does not find.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

export async function missingPrograms(names: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    names.map((name) =>
      run('sh', ['-c', `command -v ${name}`]).then(
        () => true,
        () => false,
      ),
    ),
  )
  return names.filter((_, index) => !found[index])
}
