/*
 * A language tag in the letter case of BCP 47: `en_US` and `EN-us` are `en-US`. Only its shape is checked.
 * Not by Intl, which refuses tags that pages have (`zh-cmn-Hans`) and replaces others (`iw` by `he`).
 */

const tagLengthMax = 35
const shape = /^[a-z]{2,3}(?:-[a-z\d]{1,8})*$/i

/** @returns null where it is no tag. */
export function languageTag(text: string): string | null {
  const tag = text.trim().replaceAll('_', '-')
  if (tag.length > tagLengthMax || !shape.test(tag)) return null
  const parts = tag.toLowerCase().split('-')
  // After a part of one letter come extensions, such as a calendar, which are in lower case.
  const singleton = parts.findIndex((part) => part.length === 1)
  const end = singleton === -1 ? parts.length : singleton
  return parts.map((part, index) => (index > 0 && index < end ? inCase(part) : part)).join('-')
}

function inCase(part: string): string {
  if (/^[a-z]{2}$/.test(part)) return part.toUpperCase()
  return /^[a-z]{4}$/.test(part) ? part.charAt(0).toUpperCase() + part.slice(1) : part
}
