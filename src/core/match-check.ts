/*
 * Whether a rule's `match` is right. A pattern that no request can ever meet would leave the rule silent for
 * ever, so the signs of a query, of a route's parameters and of expressions are refused, not taken as they
 * stand.
 */
import { shown } from './errors.js'
import { nearestName } from './spelling.js'

const fields = ['methods', 'paths']
const pathCountMax = 100
const pathLengthMax = 1_000

/** Those that Node's HTTP parser lets in. */
const knownMethods = (
  'ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL ' +
  'MOVE NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND REPORT SEARCH SOURCE ' +
  'SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE'
).split(' ')

/** What is wrong with a `match`, as the end of a sentence; null where it is right. */
export function matchFault(value: unknown): string | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'it is no mapping'
  const given = value as Record<string, unknown>
  const unknown = Object.keys(given).find((field) => !fields.includes(field))
  if (unknown !== undefined) {
    const near = nearestName(unknown, fields)
    const advice = near === null ? `known are ${fields.join(' and ')}` : `did you mean ${near}?`
    return `unknown field ${shown(unknown)}: ${advice}`
  }
  const { methods, paths } = given
  if (methods === undefined && paths === undefined) return 'it says neither methods nor paths'
  return listFault('methods', methods, methodFault) ?? listFault('paths', paths, pathFault)
}

function listFault(
  name: string,
  list: unknown,
  faultOf: (entry: string) => string | null,
): string | null {
  if (list === undefined) return null
  if (!Array.isArray(list)) return `${name} is no list`
  if (list.length === 0) return `${name} is empty, so that no request would match`
  if (list.length > pathCountMax) return `${name} has more than ${pathCountMax} entries`
  for (const entry of Array.from(list as unknown[])) {
    if (typeof entry !== 'string') return `${name} has ${shown(entry)}, which is no text`
    const fault = faultOf(entry)
    if (fault !== null) return fault
  }
  return null
}

function methodFault(method: string): string | null {
  const name = method.toUpperCase()
  if (knownMethods.includes(name)) return null
  const near = nearestName(name, knownMethods)
  return `${shown(method)} is no method` + (near === null ? '' : `: did you mean ${near}?`)
}

function pathFault(path: string): string | null {
  const quoted = shown(path)
  if (path === '*') return null
  if (path.length > pathLengthMax) return `${quoted} is longer than ${pathLengthMax} characters`
  if (!path.startsWith('/')) return `${quoted} does not begin with /`
  if (path.slice(0, -1).includes('*')) return `${quoted}: * is known only at the end`
  if (/:[\w$"]/.test(path)) {
    return `${quoted}: only * at the end stands for something, parameters such as :id do not`
  }
  if (/[?#]/.test(path)) return `${quoted}: a path has neither query nor fragment`
  if (/[^!-~]/.test(path)) {
    return `${quoted}: write it as it stands in a request, with escapes such as %20`
  }
  if (/["<>[\\\]^`{|}]/.test(path)) return `${quoted}: only * at the end stands for something`
  return null
}
