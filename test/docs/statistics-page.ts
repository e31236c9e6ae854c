/*
 * docs/statistics.md: what the admin routes take and answer. Each example is what a gate really answered, in
 * a little story that is played here; ids of keys, which differ in every process, are written as others.
 */
import type { Statistics } from '../../src/admin/statistics.js'
import { manualClock } from '../../src/testing/index.js'
import { administered, sending } from '../support/admin.js'
import { page, table } from './pages.js'

interface Story {
  readonly statistics: string
  readonly hours: string
  readonly verdicts: string
  readonly csv: string
  readonly keys: string
  readonly explanation: string
  readonly changed: string
  readonly audit: string
  readonly refusal: string
}

export async function statisticsPage(): Promise<string> {
  const story = await played()
  return page(`# Statistics and live changes

<!-- Written from the code: npx vitest run test/docs -u -->

The admin routes tell what was counted, which key asks for most, what would become of a request; and change a rule
without a restart. They are JSON over HTTP, for people with \`curl\` as much as for programs.

\`\`\`sh
curl -H "Authorization: Bearer $TALLYGATE_ADMIN_TOKEN" http://127.0.0.1:3000/admin/stats
\`\`\`

${table(
  ['route', 'what'],
  [
    [
      '`GET /admin/stats`',
      'totals, calendar windows, rules, store, database; in code `gate.stats()`',
    ],
    ['`GET /admin/stats/history`', 'the tallies as a series, as JSON or CSV'],
    ['`GET /admin/keys`', 'the heaviest and the most declined keys of a rule'],
    [
      '`POST /admin/explain`',
      'which rules would apply to a request, and how each stands; takes nothing',
    ],
    ['`PATCH /admin/rules/:name`', 'changes limit, window or mode of a rule at once'],
    ['`DELETE /admin/rules/:name/keys/:id`', 'forgets a key: it begins anew'],
    ['`GET /admin/audit`', 'the last thousand changes, the newest first'],
  ],
)}

- **All need the token**, whatever the method: \`Authorization: Bearer …\`. Without a token configured all answer 404. The
  11th wrong token of an address in a minute gets 429. They are outside the limits and the tallies.
- **What is wrong is said**: a problem document (RFC 9457) names what was received and what would be right. An unknown
  parameter or field is refused with the nearest known one; nothing is passed over in silence.
- **No answer may be cached** (\`no-store\`). \`HEAD\` answers as \`GET\` does, any other method 405 with \`Allow\`.
- **Counts are exact**: numbers up to 2<sup>53</sup> − 1, above that strings of digits, so the types say \`number | string\`.
- **Every field of every answer** is in [admin.schema.json](admin.schema.json), a JSON schema with a definition for each.

\`\`\`json
${story.refusal}
\`\`\`

## Statistics

\`GET /admin/stats\`; all figures are of one instant. \`hour\`, \`day\` and \`week\` look as \`minute\` does and are left out here.

\`\`\`json
${story.statistics}
\`\`\`

- \`totals\` and \`windows\` are of the database: all processes on it together, since it began (\`since\`), to the last
  request of this process and the last second of the others. \`requests\` is the sum of the three outcomes; a rule counts
  attempts, by its verdicts.
- With [\`tallygate/cluster\`](library.md#several-processes) \`scope\` is \`cluster\`, and all is of all its workers, to the
  last request.
- What is said of keys is this process's own (\`scope\`), and speaks of the rule's current window and the last one:
  \`peakUtilization\`, the highest usage of any key as a share of the limit; \`demand\`, what keys asked for in a window,
  declined attempts included; \`candidates\`, what each would have declined, and for how many keys; \`topKeys\`, who
  asks for most.
- \`evictedKeys\` had to go although they still counted, because the table was full.
- A key is named by an \`id\`, which says nothing and ends with the process, and by its address where it is one.
  \`requests\` may be too high by \`countErrorMax\`, where many keys share the room; \`over\` is never too high.
  \`keysOver\` is exact up to 512 keys a window, beyond that estimated, to some 2 %.
- \`persistence.pending\` are requests that the file does not hold yet, \`failures\` flushes that failed, \`lost\` requests that a
  minute or an hour lacks because nothing could be written for days; days and weeks have them. \`movedAside\` is where a
  damaged file went.

## History

\`GET /admin/stats/history?window=hour&from=2026-11-30T21:00:00Z&to=2026-11-30T23:00:00Z\`: each window that overlaps
\`[from, to)\`, those in which nothing happened with zeros.

\`\`\`json
${story.hours}
\`\`\`

With \`rule=ip\` the points have its verdicts:

\`\`\`json
${story.verdicts}
\`\`\`

With \`Accept: text/csv\` it is a table:

\`\`\`csv
${story.csv}
\`\`\`

${table(
  ['parameter', 'is', 'unless given'],
  [
    [
      '`window`',
      '`minute`, `hour`, `day` or `week`, kept for 2 days, 90 days, 3 years and for ever',
      '`hour`',
    ],
    [
      '`from`, `to`',
      'an ISO time with its offset, milliseconds since the epoch, or a date: the start of that day in `timeZone`',
      'up to the end of the current window: 60 minutes, 48 hours, 30 days or 26 weeks',
    ],
    ['`rule`', 'the name of a rule as configured now', 'requests by their outcome'],
  ],
)}

A series has at most 5,000 points; for a longer span the refusal names the coarser window that fits. What is pending is in
it, so it is right to the last request though the database is locked; 503 with \`Retry-After\` comes only where nothing
could be read for five seconds. The rows of a rule that is no longer configured stay in the file and are not shown.

## Keys

\`GET /admin/keys?rule=ip&limit=20\`: up to 1,000 of those that made the most attempts, and of those that were declined most
often, in the rule's current window and the last one. A rule that counts everybody together has none.

\`\`\`json
${story.keys}
\`\`\`

## Explain

\`POST /admin/explain\` with any of \`method\`, \`path\`, \`address\`, \`keyId\`, \`function\`, for example
\`{ "address": "203.0.113.7", "method": "GET", "path": "/api/ping" }\`. It takes nothing and leaves no trace.

\`\`\`json
${story.explanation}
\`\`\`

Without a \`function\` it is about a request and the general rules; with one about those and the function's. \`keyId\` stands
for the key of the rules that count a key with that id, so that a session can be asked about and nobody learns whose it
is. Rules that would not apply have nulls, disabled ones too, and all of them for an exempt address. \`applies: null\` means
that a function of the rule cannot say without the request itself. \`retryAfterMs: null\` in a rule that applies means never.

## Live changes

\`PATCH /admin/rules/ip\` with any of \`limit\`, \`window\`, \`mode\`, as JSON. The answer is the rule's entry of the statistics, and
what became of the change:

\`\`\`json
${story.changed}
\`\`\`

- **At once.** The change is in force with the answer. Keys keep their usage; another window starts the rule afresh:
  \`restarted\`. The same checks hold as for the configuration. A limit that is a function in code is changed there: 409.
- **Kept.** It lies in the database and is in force again after a restart, where the configuration still says what it
  replaced. A field that was changed in the configuration since is the configuration's: the file wins, and the audit says
  so. Setting a field to what the configuration says takes the change back.
- **\`persisted: false\`** means that it would not survive a restart: there is no database, or that takes no writes now. Then
  the change waits in memory and is tried again every second; a locked database at three in the morning does not
  keep you from raising a limit.
- **Shared.** Every process on the same database takes it over within two seconds, the newest change wins. They should have
  the same configuration: a change of a field counts for those whose configuration says what it replaced.
- **Counted** in \`tallygate_configuration_changes_total\`, which the boards may draw as annotations.

\`DELETE /admin/rules/ip/keys/5d0c1f2a9b3e4c71\` forgets a key, for this rule and in this process, and answers 204; 404 where the
rule knows no such key, as after a restart, so that an old or mistyped id is not taken for a success.

## Audit

\`GET /admin/audit\`: \`change\`, \`forget-key\`, and \`file-wins\` where the configuration was changed since. A file that is begun
anew has the trail since then.

\`\`\`json
${story.audit}
\`\`\`
`)
}

const ids = ['5d0c1f2a9b3e4c71', '8e17c6d2405fa39b']

async function played(): Promise<Story> {
  const clock = manualClock(Date.parse('2026-11-30T22:40:03.120Z'))
  const rules = [
    { name: 'ip', key: 'ip' as const, limit: 3, window: '1m', candidates: [{ limit: 2 }] },
  ]
  const asked = await administered({ rules, clock }, (app, gate) => {
    app.set('trust proxy', 1)
    app.use(gate.middleware)
    app.use((_request, response) => void response.send('ok'))
  })
  const { ask, read, admin } = asked
  const come = async (address: string, times: number) => {
    for (let turn = 0; turn < times; turn++)
      await ask('/', { headers: { 'x-forwarded-for': address } })
  }
  await come('198.51.100.4', 1)
  clock.advance(64_000)
  await come('203.0.113.7', 5)
  await come('198.51.100.4', 2)
  const span = 'from=2026-11-30T21:00:00Z&to=2026-11-30T23:00:00Z'
  const history = `/stats/history?window=hour&${span}`
  const csv = await admin(history, { headers: { accept: 'text/csv' } })
  const lists = await read<{ heaviest: { id: string }[] }>('/keys?rule=ip')
  // What it really called them.
  const known = lists.heaviest.map(({ id }) => id)
  const shown = (value: unknown) =>
    known.reduce((text, id, index) => text.replaceAll(id, ids[index] ?? ''), JSON.stringify(value))
  const question = { address: '203.0.113.7', method: 'GET', path: '/api/ping' }
  const before = {
    statistics: shown(shortened(await read<Statistics>('/stats'))),
    hours: shown(await read(history)),
    verdicts: shown(await read(`${history}&rule=ip`)),
    csv: csv.text.trimEnd().replaceAll('\r', ''),
    keys: shown(lists),
    explanation: shown(await read('/explain', sending('POST', question))),
    refusal: (await admin('/rules/ip', sending('PATCH', { limt: 5 }))).text.trim(),
  }
  clock.advance(41_000)
  const changed = await read<Statistics['rules'][0]>('/rules/ip', sending('PATCH', { limit: 5 }))
  await admin(`/rules/ip/keys/${known[0]}`, { method: 'DELETE' })
  return {
    ...before,
    changed: shown({ ...changed, windows: {}, topKeys: [] }),
    audit: shown(await read('/audit')),
  }
}

/** Windows are many and alike. */
function shortened(statistics: Statistics): object {
  const minutes = ({ minute }: { minute: object }) => ({ minute, hour: {}, day: {}, week: {} })
  return {
    ...statistics,
    windows: minutes(statistics.windows),
    rules: statistics.rules.map((rule) => ({ ...rule, windows: minutes(rule.windows) })),
  }
}
