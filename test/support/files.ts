/*
 * What a test does to files and file systems to see how that is borne.
 */
import { spawnSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  openSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { temporaryFolder } from './processes.js'

/**
 * Makes a file, or a folder, one that may not be written. The superuser passes over permissions, so that takes an
 * attribute, which not every file system has.
 *
 * @returns what takes that back; null, and a word on standard error, where it cannot be done here.
 */
export function forbidWriting(path: string): (() => void) | null {
  const { mode } = statSync(path)
  chmodSync(path, mode & ~0o222)
  const letWrite = () => {
    spawnSync('chattr', ['-i', path])
    chmodSync(path, mode)
  }
  if (!mayWrite(path)) return letWrite
  spawnSync('chattr', ['+i', path])
  if (!mayWrite(path)) return letWrite
  letWrite()
  process.stderr.write(`\n  SKIPPED: nothing can be made read-only here, so not ${path}\n`)
  return null
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/**
 * A disk of a megabyte, for what happens when it is full. Mounting takes the superuser, and more than a
 * container gives it by default.
 *
 * @returns its folder; null, and a word on standard error, where it cannot be had here.
 */
export function tinyDisk(): string | null {
  const folder = temporaryFolder()
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', folder])
  if (status !== 0) {
    process.stderr.write(`\n  SKIPPED: no disk can be mounted here: ${String(stderr)}\n`)
    return null
  }
  onTestFinished(() => void spawnSync('umount', ['-l', folder]))
  return folder
}

/** Fills a disk to the brim. @returns what makes room again. */
export function fillUp(folder: string): () => void {
  const path = join(folder, 'filler')
  const file = openSync(path, 'w')
  try {
    for (let size = 65_536; size >= 1; size /= 2) while (append(file, size));
  } finally {
    closeSync(file)
  }
  return () => rmSync(path)
}

function append(file: number, size: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(size)) > 0
  } catch {
    return false
  }
}

/** Writes nonsense over a file from `fromByte` on, and leaves its length as it is. */
export function damage(path: string, fromByte = 0): void {
  const { size } = statSync(path)
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(size - fromByte, 0x5a), 0, size - fromByte, fromByte)
  closeSync(file)
}
