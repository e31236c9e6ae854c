/*
 * The shape of a rule as somebody writes it, in a file or in code: what compiles. What else must hold of
 * each field is in rule-fields.ts.
 */
import type { AlgorithmName } from './algorithm.js'
import type { Mode } from './decision.js'
import type { Facts } from './facts.js'

/**
 * Whom to count, told from the facts; null or undefined where there is nobody, and then the rule does as its
 * `absent` says. An empty text is a key like any other.
 */
export type KeyFunction = (
  facts: Facts,
) => string | number | bigint | readonly string[] | null | undefined

/** How much the client that these facts are of may use: one of few numbers, as plans have it. */
export type LimitFunction = (facts: Facts) => number

/** One key, or a part of several that are joined. */
export type KeyPartOption = 'ip' | 'session' | `header:${string}` | KeyFunction

export type KeyOption =
  'global' | KeyPartOption | readonly [KeyPartOption, KeyPartOption, KeyPartOption?, KeyPartOption?]

/** Which requests a rule is for; a `*` at the end of a path stands for one or more characters. */
export interface MatchOptions {
  /** `GET` includes HEAD. */
  methods?: readonly string[] | undefined
  paths?: readonly string[] | undefined
}

/** A rule as it stands in tallygate.yml or in code; see docs/configuration.md. */
export interface RuleOptions {
  name: string
  key?: KeyOption | undefined
  /** Cost units a window, or what gives them. */
  limit: number | LimitFunction
  /** `500ms`, `30s`, `1m`, `1h`, `1d`, `1w`, or whole milliseconds. */
  window: string | number
  algorithm?: AlgorithmName | undefined
  strict?: boolean | undefined
  function?: string | undefined
  match?: MatchOptions | undefined
  mode?: Mode | undefined
  near?: number | undefined
  absent?: 'address' | 'skip' | undefined
  burst?: number | undefined
  minInterval?: string | number | undefined
  maxAge?: string | number | undefined
  candidates?: readonly CandidateOptions[] | undefined
  maxKeys?: number | undefined
  maxEntries?: number | undefined
  ipv6Prefix?: number | undefined
  expose?: boolean | undefined
  persist?: boolean | undefined
}

/** Another limit for the same keys, judged beside the rule; what is not stated is the rule's. */
export interface CandidateOptions {
  limit: number
  window?: string | number | undefined
  algorithm?: AlgorithmName | undefined
}
