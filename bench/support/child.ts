/*
 * Runs a benchmark script in a process of its own, with the collector at hand, and reads the JSON that it
 * prints. What goes wrong in the child goes wrong here.
 */
import { execFile } from 'node:child_process'
import { totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Heap for the contenders that keep a million objects and more: most of the machine's memory. */
export const heapMbMax = Math.min(16_384, Math.floor((totalmem() / 2 ** 20) * 0.7))

const flags = ['--expose-gc', `--max-old-space-size=${heapMbMax}`]
const outputBytesMax = 2 ** 26

/** @param script URL of a compiled script. */
export async function runChild<T>(script: string, args: readonly string[]): Promise<T> {
  const { stdout } = await run(process.execPath, [...flags, fileURLToPath(script), ...args], {
    maxBuffer: outputBytesMax,
  })
  return JSON.parse(stdout) as T
}

/** The arguments after `--child`; null where this process is not one. */
export function childArguments(): string[] | null {
  const index = process.argv.indexOf('--child')
  return index === -1 ? null : process.argv.slice(index + 1)
}

/** A child answers and ends, whatever timers its contender has left. */
export function answer(value: unknown): void {
  process.stdout.write(JSON.stringify(value), () => process.exit())
}
