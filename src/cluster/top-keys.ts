/*
 * Lists of the heaviest keys, of several processes, as one list. A key is the same where ids come from the
 * same seed, as those of one database do, and the ids are equal; or where both name the same address.
 * Others are listed apart. Pure.
 *
 * What each list promises holds for the merged one: requests − countErrorMax ≤ true ≤ requests. So a key
 * that a list lacks may have made there as many as that list may leave out. Of different seeds the upper
 * bound lacks what is listed elsewhere without its address.
 */
import type { KeyReport, TopKeys } from './report.js'

export interface SpacedTopKeys extends TopKeys {
  readonly keySpace: string
}

interface Found {
  /** As the first list has it. */
  readonly id: string
  key: string | null
  requests: number
  over: number
  countErrorMax: number
  readonly lists: Set<TopKeys>
}

/** @param countMax how many keys are wanted; what follows counts for `unlistedMax`. */
export function mergeTopKeys(lists: readonly SpacedTopKeys[], countMax: number): TopKeys {
  const nameOf = namesIn(lists)
  const found = new Map<string, Found>()
  for (const list of lists) {
    for (const each of list.keys) {
      const name = nameOf(list, each)
      const known = found.get(name) ?? nothingOf(each)
      found.set(name, known)
      addKey(known, each)
      known.lists.add(list)
    }
  }
  for (const known of found.values()) {
    for (const list of lists) {
      if (known.lists.has(list)) continue
      known.requests += list.unlistedMax
      known.countErrorMax += list.unlistedMax
    }
  }
  const sorted = [...found.values()].toSorted((a, b) => atLeast(b) - atLeast(a) || byId(a, b))
  const unlisted = lists.reduce((sum, { unlistedMax }) => sum + unlistedMax, 0)
  const rest = sorted.slice(countMax).map(({ requests }) => requests)
  return {
    keys: sorted.slice(0, countMax).map(({ lists: _lists, ...each }) => each),
    unlistedMax: Math.max(unlisted, ...rest),
  }
}

/** A key without its address in one list may have it in another of the same seed. */
function namesIn(lists: readonly SpacedTopKeys[]) {
  const addresses = new Map<string, string>()
  const idOf = ({ keySpace }: SpacedTopKeys, { id }: KeyReport) => `${keySpace} ${id}`
  for (const list of lists) {
    for (const each of list.keys) if (each.key !== null) addresses.set(idOf(list, each), each.key)
  }
  return (list: SpacedTopKeys, each: KeyReport): string => {
    const address = addresses.get(idOf(list, each))
    return address === undefined ? `id ${idOf(list, each)}` : `address ${address}`
  }
}

function nothingOf({ id }: KeyReport): Found {
  return { id, key: null, requests: 0, over: 0, countErrorMax: 0, lists: new Set() }
}

function addKey(known: Found, each: KeyReport): void {
  known.key ??= each.key
  known.requests += each.requests
  known.over += each.over
  known.countErrorMax += each.countErrorMax
}

function atLeast({ requests, countErrorMax }: Found): number {
  return requests - countErrorMax
}

function byId(a: Found, b: Found): number {
  return a.id < b.id ? -1 : Number(a.id > b.id)
}
