/*
 * The algorithms that a rule can name. Adding one: a file beside this, a row here, a section in
 * docs/algorithms.md, its traces in test/vectors.
 */
import type { Algorithm } from '../algorithm.js'
import { exponential } from './exponential.js'
import { fixedWindow } from './fixed-window.js'
import { rollingWindow } from './rolling-window.js'
import { slidingWindow } from './sliding-window.js'
import { tokenBucket } from './token-bucket.js'

export const algorithms: ReadonlyMap<string, Algorithm> = new Map(
  [slidingWindow, fixedWindow, rollingWindow, exponential, tokenBucket].map((algorithm) => [
    algorithm.name,
    algorithm,
  ]),
)
