/*
 * Finds the known name that somebody probably meant, for messages about unknown ones.
 */

const comparedLengthMax = 64

/** The nearest of `known` to `name`, or null where none is near enough to be a slip of the fingers. */
export function nearestName(name: string, known: readonly string[]): string | null {
  let best: string | null = null
  const comparedLength = Math.min(name.length, comparedLengthMax)
  let bestDistance = Math.max(2, Math.ceil(comparedLength / 3)) + 1
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** Levenshtein's distance by the two-row method; names longer than 64 are compared by their start. */
function editDistance(from: string, to: string): number {
  const a = from.slice(0, comparedLengthMax)
  const b = to.slice(0, comparedLengthMax)
  let above = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const line = [row]
    for (let column = 1; column <= b.length; column++) {
      const replaced = (above[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1)
      line.push(Math.min(replaced, (above[column] ?? 0) + 1, (line[column - 1] ?? 0) + 1))
    }
    above = line
  }
  return above[b.length] ?? 0
}
