/*
 * Reads from the database for somebody who waits: a lock or a slow disk is waited out for five seconds, and
 * only then is the answer that nothing can be read now.
 */
import { within } from '../sqlite/within.js'
import { Refusal } from './answers.js'

const patienceMs = 5_000
const pauseMs = 200
const retryAfterSeconds = 5

/** @throws Refusal 503 where every try failed, or none has ended in time. */
export async function patiently<T>(read: () => Promise<T>): Promise<T> {
  const waiting = { isOver: false }
  const answer = await within(readUntilOver(read, waiting), patienceMs)
  waiting.isOver = true
  if (answer !== 'late') return answer
  throw new Refusal(
    503,
    'the database cannot be read now: another process holds it, or it is slow',
    {
      'Retry-After': String(retryAfterSeconds),
    },
  )
}

async function readUntilOver<T>(
  read: () => Promise<T>,
  waiting: { readonly isOver: boolean },
): Promise<T | 'late'> {
  while (!waiting.isOver) {
    try {
      return await read()
    } catch {
      // It shows in the flushes, which meet the same fault and report it.
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
  return 'late'
}
