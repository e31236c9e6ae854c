/*
 * One request and its answer. It takes at most five seconds and reads at most a megabyte, and it follows no
 * redirect, because that could lead away from the machine that the load was allowed for. A request without
 * an answer is a value, with the reason: a load goes on.
 */
import type { Clock } from '../core/clock.js'
import type { Asked, Client } from './client.js'

export type Exchange =
  | {
      readonly isAnswered: true
      readonly status: number
      readonly headers: Headers
      /** Names of the rules that declined; empty unless the status is 429. */
      readonly declinedBy: readonly string[]
      readonly latencyMs: number
    }
  | { readonly isAnswered: false; readonly reason: string }

const timeoutMs = 5_000
const bytesMax = 1_000_000

export async function exchange(
  base: string,
  client: Client,
  asked: Asked,
  clock: Clock,
): Promise<Exchange> {
  const startedMs = clock.monotonicMs()
  try {
    const response = await fetch(new URL(asked.path, base), {
      method: asked.method,
      headers: client.headers(),
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    })
    const body = await readBody(response)
    return {
      isAnswered: true,
      status: response.status,
      headers: response.headers,
      declinedBy: response.status === 429 ? violatedPolicies(body) : [],
      latencyMs: clock.monotonicMs() - startedMs,
    }
  } catch (error) {
    return { isAnswered: false, reason: reasonOf(error) }
  }
}

/** The text of a body, to its end: a connection is used again only when its answer was read. */
async function readBody(response: Response): Promise<string> {
  if (response.body === null) return ''
  const decoder = new TextDecoder()
  let byteCount = 0
  let text = ''
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    byteCount += chunk.byteLength
    if (byteCount > bytesMax) break
    if (response.status === 429) text += decoder.decode(chunk, { stream: true })
  }
  return text
}

/** Only what looks like the name of a rule: it is shown on a terminal. */
function violatedPolicies(body: string): string[] {
  try {
    const problem = JSON.parse(body) as { 'violated-policies'?: unknown } | null
    const names = problem?.['violated-policies']
    if (!Array.isArray(names)) return []
    return names.filter((name) => typeof name === 'string' && /^[a-z][a-z0-9-]{0,63}$/.test(name))
  } catch {
    // Declined by something that writes no problem document.
    return []
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return `no answer within ${timeoutMs / 1_000} s`
  const { cause } = error as { cause?: { code?: string; message?: string } }
  return cause?.code ?? cause?.message ?? error.message
}
