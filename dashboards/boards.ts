/*
 * The list of boards, and how each becomes the text of a file. The generator writes these texts
 * and the tests compare with them, so that a committed board is always the one the sources
 * describe.
 */
import { overview } from './overview.js'

/** File names in `dashboards/json`, each with the exact text it must hold. */
export function boardFiles(): ReadonlyMap<string, string> {
  return new Map([['overview.json', text(overview())]])
}

/**
 * The names of the files that do not hold what they must; `committed` is null for one that is
 * missing.
 */
export function drifting(committed: (name: string) => string | null): string[] {
  return [...boardFiles()]
    .filter(([name, wanted]) => committed(name) !== wanted)
    .map(([name]) => name)
}

function text(board: object): string {
  return `${JSON.stringify(board, null, 2)}\n`
}
