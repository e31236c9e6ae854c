/*
 * The version of this package, read from its package.json, the one place where it is written.
 */
import { readFileSync } from 'node:fs'

const manifest = new URL('../../package.json', import.meta.url)

export const version = (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
