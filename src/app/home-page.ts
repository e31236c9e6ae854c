/*
 * The page at `/`: what this is, a form that starts a session, and a button to try each limit. It shows the
 * answers as they come, with the header fields, so that a newcomer sees a limit at work in a minute.
 */
import { formatDuration } from '../core/duration.js'
import { shownLimit } from '../core/plans.js'
import type { CompiledRule } from '../core/rule.js'

export const homeStyle = `
  :root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent);
    --ok: #1a7f4b; --no: #c0392b }
  @media (prefers-color-scheme: dark) { :root { --ok: #4ade80; --no: #f87171 } }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem }
  h1 { font-size: 1.6rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
  p { margin: .4rem 0 } code { font-size: .92em }
  table { border-collapse: collapse; width: 100%; overflow-wrap: anywhere }
  th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line) }
  .actions { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center }
  input { font: inherit; padding: .4rem .6rem; flex: 1; min-width: 12rem; border-radius: 6px;
    border: 1px solid var(--line); background: transparent; color: inherit }
  button { font: inherit; padding: .4rem .9rem; border: 1px solid var(--line); border-radius: 6px;
    background: color-mix(in srgb, currentColor 6%, transparent); color: inherit; cursor: pointer }
  button:hover { background: color-mix(in srgb, currentColor 12%, transparent) }
  button:disabled { opacity: .5; cursor: default }
  form { display: contents }
  .count { font-size: 1.2rem; margin: .6rem 0 } .ok { color: var(--ok) } .no { color: var(--no) }
  pre { border: 1px solid var(--line); border-radius: 6px; padding: .8rem; min-height: 9em;
    white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0 }
`

export const homeScript = `
  const allowed = document.getElementById('allowed')
  const declined = document.getElementById('declined')
  const answer = document.getElementById('answer')
  const state = document.getElementById('session-state')
  let allowedCount = 0
  let declinedCount = 0

  async function ask(method, path) {
    const response = await fetch(path, { method })
    const body = await response.text()
    if (response.status === 429) declinedCount++
    else allowedCount++
    allowed.textContent = allowedCount
    declined.textContent = declinedCount
    const fields = ['RateLimit-Policy', 'RateLimit', 'Retry-After']
      .filter((name) => response.headers.has(name))
      .map((name) => name + ': ' + response.headers.get(name))
    answer.textContent = [method + ' ' + path + '  ' + response.status, ...fields, '', body].join('\\n')
    return response
  }

  // Calls for one page share its fetch, so each is for another.
  let pageCount = 0

  async function askMany(button) {
    const buttons = [...document.querySelectorAll('button')]
    for (const each of buttons) each.disabled = true
    try {
      const times = Number(button.dataset.times)
      for (let sent = 0; sent < times; sent += 10) {
        const batch = Math.min(10, times - sent)
        const paths = Array.from({ length: batch }, () => button.dataset.path.replace('{n}', pageCount++))
        await Promise.all(paths.map((path) => ask('GET', path)))
      }
    } catch (error) {
      answer.textContent = 'The server did not answer: ' + error.message
    }
    for (const each of buttons) each.disabled = false
  }

  for (const button of document.querySelectorAll('button[data-path]')) {
    button.addEventListener('click', () => askMany(button))
  }
  document.getElementById('parse-form').addEventListener('submit', async (event) => {
    event.preventDefault()
    const { value } = document.getElementById('page')
    await ask('GET', '/api/parse?url=' + encodeURIComponent(value))
  })
  document.getElementById('session-form').addEventListener('submit', async (event) => {
    event.preventDefault()
    const { ok } = await ask('POST', '/api/session')
    state.textContent = ok ? 'You have a session: the session limit counts you now.' : 'Declined.'
  })
  document.getElementById('session-end').addEventListener('click', async () => {
    const { ok } = await ask('DELETE', '/api/session')
    state.textContent = ok ? 'No session: only your address counts now.' : 'Declined.'
  })
`

/** @param rules as they are now; their names need no escaping, by what a name may be. */
export function homePage(rules: readonly CompiledRule[]): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>tallygate</title>
<link rel="icon" href="data:,">
<style>${homeStyle}</style>
</head>
<body>
<h1>tallygate</h1>
<p>A rate limiter for Express that shows its work. These limits stand in front of this very page:</p>
<table>
<thead><tr><th>rule</th><th>counts</th><th>allows</th><th>for</th></tr></thead>
<tbody>
${rules.map(ruleRow).join('\n')}
</tbody>
</table>
<h2>Try them</h2>
<div class="actions">
<button data-path="/api/ping" data-times="1">1 request</button>
<button data-path="/api/parse?url=https://example.invalid/{n}" data-times="80">80 calls of parse-url</button>
<button data-path="/api/ping" data-times="250">250 requests</button>
<button data-path="/api/ping" data-times="500">500 requests</button>
</div>
<p>Only a real fetch counts for <code>parse-url</code>: the 80 calls are for 80 pages, none of which exists.</p>
<p class="count"><span class="ok"><b id="allowed">0</b> allowed</span> ·
<span class="no"><b id="declined">0</b> declined</span></p>
<pre id="answer">The last answer shows here, with the fields that tell a client where it stands.</pre>
<h2>Parse a page</h2>
<div class="actions">
<form id="parse-form" action="/api/parse"><input id="page" name="url" type="url" required
aria-label="Address of a page" value="https://example.com/"><button>Parse it</button></form>
</div>
<h2>Session</h2>
<div class="actions">
<form id="session-form" method="post" action="/api/session"><button>Start a session</button></form>
<button id="session-end">End it</button>
</div>
<p id="session-state">Without a session, only your address counts.</p>
<h2>See it</h2>
<p><a href="/metrics">/metrics</a> for Prometheus · <a href="/admin/stats">/admin/stats</a> with the
admin token · <a href="/healthz">/healthz</a> · <a href="/readyz">/readyz</a></p>
<script>${homeScript}</script>
</body>
</html>
`
}

const whoms = new Map([
  ['global', 'everybody together'],
  ['ip', 'each address'],
  ['session', 'each session'],
])

function ruleRow(rule: CompiledRule): string {
  const whom = whoms.get(rule.key) ?? `each <code>${escaped(rule.key)}</code>`
  const scope = scopeOf(rule)
  const allows = `${shownLimit(rule)} in ${formatDuration(rule.windowMs)}`
  const mode = rule.mode === 'enforce' ? '' : ` (${rule.mode})`
  return `<tr><td><code>${rule.name}</code>${mode}</td><td>${whom}</td><td>${allows}</td><td>${scope}</td></tr>`
}

function scopeOf({ function: name, match }: CompiledRule): string {
  const what = name === null ? 'every request' : `the function <code>${name}</code>`
  if (match === null) return what
  const words = [...(match.methods ?? []), ...(match.paths ?? [])].join(' ')
  return `${what} of <code>${escaped(words)}</code>`
}

/** Names of headers and paths may hold what HTML would read. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
