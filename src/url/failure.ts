/*
 * Why a page was not had: one error with the status that answers a client and one reason of a closed set.
 * Its message is for strangers: it never names an address that a host resolved to, nor what lies inside
 * the network.
 */

/**
 * `url` is refused by its text; the others became of a fetch: `blocked` leads where nobody may go,
 * `dns`, `connect`, `tls` ended before an answer began, `timeout` took too long, `redirects` were too many or
 * led nowhere, `status` was not 2xx, `body` could not be read to its end or unpacked.
 */
export const failureReasons = [
  'url',
  'blocked',
  'dns',
  'connect',
  'tls',
  'timeout',
  'redirects',
  'status',
  'body',
] as const

export type FailureReason = (typeof failureReasons)[number]

/** What answers the client: not a URL, not allowed there, an upstream that failed, one that is too slow. */
export type FailureStatus = 400 | 403 | 502 | 504

const statuses: Readonly<Record<FailureReason, FailureStatus>> = {
  url: 400,
  blocked: 403,
  dns: 502,
  connect: 502,
  tls: 502,
  timeout: 504,
  redirects: 502,
  status: 502,
  body: 502,
}

export class UrlFailure extends Error {
  override readonly name = 'UrlFailure'
  readonly reason: FailureReason
  readonly status: FailureStatus

  constructor(reason: FailureReason, sentence: string, options?: ErrorOptions) {
    super(sentence, options)
    this.reason = reason
    this.status = statuses[reason]
  }
}
