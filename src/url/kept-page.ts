/*
 * A page as it is kept: what an answer says, but for whether it came from the cache. In a row it is JSON
 * with the version of its shape. A row that is damaged, of another version or of another URL is no page: it
 * is fetched anew, and nobody sees an error.
 *
 * A page is fresh while its age is from 0 up to, but not including, a day by the wall clock. One that was
 * dated ahead, before the clock was set back, is not: else it would live for longer than a day.
 */
import { z } from 'zod'
import type { ParsedPage } from './page.js'

export type KeptPage = Omit<ParsedPage, 'cached'>

export const pageLifetimeMs = 86_400_000

export function isFresh(fetchedMs: number, nowMs: number): boolean {
  const ageMs = nowMs - fetchedMs
  return ageMs >= 0 && ageMs < pageLifetimeMs
}

const version = 1

const textOrNull = z.string().nullable()
const shape = z.strictObject({
  version: z.literal(version),
  page: z.strictObject({
    url: z.string(),
    finalUrl: z.string(),
    title: textOrNull,
    description: textOrNull,
    image: textOrNull,
    siteName: textOrNull,
    canonical: textOrNull,
    language: textOrNull,
    contentType: textOrNull,
    fetchedAt: z.iso.datetime(),
    truncated: z.boolean(),
  } satisfies Record<keyof KeptPage, z.ZodType>),
})

export function writtenPage(page: KeptPage): string {
  return JSON.stringify({ version, page })
}

/** The page of that URL in a row's data; null where it is none. */
export function readWritten(data: string, url: string): KeptPage | null {
  const { success, data: written } = shape.safeParse(parsed(data))
  return success && written.page.url === url ? written.page : null
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    return null
  }
}
