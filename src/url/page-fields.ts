/*
 * The table of what is read from a page: each field with its sources, the best first, and how a text
 * becomes its value. A source is a <meta> by its name or property, which has no space in it, or another
 * element in words that have one. The first text that gives a value wins; empty and impossible ones are
 * passed over. To add a field, add its row here and in docs/library.md, its line in PageFields and in the shape
 * of a kept page.
 */
import { languageTag } from './language-tag.js'
import type { PageFields } from './page.js'
import { textLine } from './text-line.js'
import { pageAddress, webAddress } from './web-address.js'

interface Field {
  readonly from: readonly string[]
  /** @param base what relative addresses in the page are relative to. */
  readonly as: (text: string, base: string) => string | null
}

export const pageFields = {
  title: {
    from: ['text of <title>', 'og:title', 'twitter:title', 'text of <h1>'],
    as: lineOf(300),
  },
  description: {
    from: ['description', 'og:description', 'twitter:description'],
    as: lineOf(1000),
  },
  image: {
    from: [
      'og:image',
      'og:image:url',
      'og:image:secure_url',
      'twitter:image',
      'twitter:image:src',
      '<link rel=image_src>',
    ],
    as: webAddress,
  },
  siteName: {
    from: ['og:site_name', 'application-name'],
    as: lineOf(200),
  },
  canonical: {
    from: ['<link rel=canonical>', 'og:url'],
    as: pageAddress,
  },
  language: {
    from: ['<html lang>', '<html xml:lang>', '<meta http-equiv=content-language>', 'og:locale'],
    as: languageTag,
  },
} satisfies Readonly<Record<keyof PageFields, Field>>

function lineOf(lengthMax: number): Field['as'] {
  return (text) => textLine(text, lengthMax)
}
