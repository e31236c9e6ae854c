/*
 * What the limiter answers. "No" is a value here, never an exception. The sets below are closed: metrics,
 * tallies and statistics have one slot for each member and rely on their order.
 */

/** One rule's own answer to an attempt. */
export const verdicts = ['within', 'near', 'over'] as const
export type Verdict = (typeof verdicts)[number]

/** What became of a request. */
export const outcomes = ['allowed', 'declined', 'exempt'] as const
export type Outcome = (typeof outcomes)[number]

/** `enforce` declines; `shadow` decides and counts but never declines; `disabled` does not exist. */
export const modes = ['enforce', 'shadow', 'disabled'] as const
export type Mode = (typeof modes)[number]

/** How one rule judged an attempt, and its key's state after the attempt was counted. */
export interface RuleVerdict {
  rule: string
  mode: Mode
  verdict: Verdict
  /** Whether this rule alone would allow the attempt. */
  allowed: boolean
  /** Cost units a window. */
  limit: number
  /** Cost units used, possibly fractional. */
  usage: number
  /** Whole cost units left, never below 0. */
  remaining: number
  /** 0 if allowed; else whole milliseconds until this rule would allow it; Infinity if it never can. */
  retryAfterMs: number
  /** Whole milliseconds until usage is 0, if nothing more is asked. */
  resetMs: number
}

/** The answer to one attempt, over all rules that applied to it. */
export interface Decision {
  allowed: boolean
  /**
   * The rule to tell the client about: of those that declined the one with the longest wait, else the
   * enforced one with the least share remaining; null where no rule applied.
   */
  rule: string | null
  /** That rule's limit; Infinity where no rule applied. */
  limit: number
  /** That rule's remaining cost units; Infinity where no rule applied. */
  remaining: number
  /** 0 if allowed; else whole milliseconds until every enforced rule would allow the same attempt. */
  retryAfterMs: number
  /** That rule's milliseconds until its usage is 0; 0 where no rule applied. */
  resetMs: number
  /** What the attempt took, or would have taken. */
  cost: number
  /** One entry for each rule that applied, in the order of the configuration. */
  verdicts: RuleVerdict[]
}
