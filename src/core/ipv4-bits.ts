/*
 * The 32 bits of an IPv4 address in its canonical text, read without making anything: this runs for every
 * request. What is no such text is told apart by NaN, an IPv6 address too.
 */

const dot = 46
const zero = 48

/** A whole number from 0 to 2^32 − 1; NaN where `text` is not four numbers with dots between. */
export function ipv4Bits(text: string): number {
  let bits = 0
  let octet = 0
  let dotCount = 0
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === dot) {
      bits = bits * 256 + octet
      octet = 0
      dotCount++
    } else if (code >= zero && code <= zero + 9) {
      octet = octet * 10 + code - zero
    } else {
      return NaN
    }
  }
  return dotCount === 3 ? bits * 256 + octet : NaN
}
