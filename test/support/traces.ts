/*
 * The traces of an independent program, in exact arithmetic: what each step of one key must answer.
 */
import type { AlgorithmName } from '../../src/core/algorithm.js'
import { readFileSync } from 'node:fs'

export interface Step {
  at: number
  cost: number
  allowed: boolean
  /** Left open where it hangs on the last bit. */
  remaining?: number
  /** null: never. */
  retryAfterMs: number | null
  usage?: number
}

export interface Trace {
  algorithm: AlgorithmName
  limit: number
  window: number
  strict: boolean
  burst?: number
  /** 0 for none. */
  minInterval?: number
  steps: Step[]
}

/** How many traces each file holds, so that none goes missing unnoticed. */
export const traceCounts: Record<string, number> = {
  'sliding-window': 18,
  'fixed-window': 17,
  'rolling-window': 17,
  exponential: 17,
  'token-bucket': 17,
}

export function tracesOf(algorithm: string): Trace[] {
  const file = new URL(`../vectors/${algorithm}.json`, import.meta.url)
  return JSON.parse(readFileSync(file, 'utf8')) as Trace[]
}
