/*
 * Many short texts in little room: `words('a b c')` is `['a', 'b', 'c']`.
 */
export function words(text: string): string[] {
  return text.trim().split(/\s+/)
}
