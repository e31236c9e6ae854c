/*
 * Request targets that Express cannot take apart, such as `x://` or `http://[::1/`, would pass by every
 * handler of the app, the gate included, and end in a bare 404. Here each target becomes a path: of an
 * absolute one its own, of anything else one that no route has. So whatever arrives is guarded and counted.
 */
import { urlOf } from '../core/url-of.js'

/** The path and query of a request target; always begins with a slash. */
export function pathOfTarget(target: string): string {
  if (target.startsWith('/')) return target
  const url = urlOf(target)
  return url?.pathname.startsWith('/') === true ? url.pathname + url.search : `/${target}`
}
