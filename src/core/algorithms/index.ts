/*
 * The algorithms that a rule can name. Adding one: a file beside this, a row here, a section in
 * docs/algorithms.md, its traces in test/vectors.
 */
import type { Algorithm } from '../algorithm.js'
import { slidingWindow } from './sliding-window.js'

export const algorithms: ReadonlyMap<string, Algorithm> = new Map(
  [slidingWindow].map((algorithm) => [algorithm.name, algorithm]),
)

/** Named by the contract and not here yet: a rule that asks for one is told so. */
export const laterAlgorithms = ['fixed-window', 'rolling-window', 'exponential', 'token-bucket']
