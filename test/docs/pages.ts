/*
 * The pages of docs that say what tables in the code say: written from those tables, so that neither can
 * change without the other. `npx vitest run test/docs -u` writes them anew.
 */
import { format, resolveConfig } from 'prettier'
import { ruleFields } from '../../src/core/rule-fields.js'
import { labelValues, metrics, type MetricRow } from '../../src/metrics/table.js'

const notice = '<!-- Written from the code: npx vitest run test/docs -u -->'

export function configurationPage(): Promise<string> {
  const rows = Object.entries(ruleFields).map(([name, { doc, must, fallback }]) => [
    `\`${name}\``,
    doc,
    must,
    fallback ?? '**required**',
  ])
  return page(`# Configuration

${notice}

\`tallygate.yml\` is YAML 1.2: a list of rules, and how the calendar of the tallies runs. \`npx tallygate check
tallygate.yml\` says in words what a file does, or what is wrong with it. Whatever is unknown or impossible stops the
start with a line that names the rule, the field, what was received and what would be right; nothing is ever silently
unlimited.

| field | meaning | must be | default |
| --- | --- | --- | --- |
| \`rules\` | the limits, below | a list of one or more | **required** |
| \`exempt\` | clients that no rule counts | \`{ ips: [10.0.0.0/8, ...] }\`: addresses and ranges | nobody |
| \`timeZone\` | the calendar of the tallies | the IANA name of a time zone, such as \`Europe/Berlin\` | \`UTC\` |
| \`weekStartsOn\` | the first day of a week | \`monday\`, \`saturday\` or \`sunday\` | \`monday\` |

## Rules

${table(['field', 'meaning', 'must be', 'default'], rows)}

### Choosing

- **One rule for everybody, one for each client.** \`global\` protects the service from all of them together, \`ip\` the
  others from one of them. A rule with \`function\` protects one costly thing.
- **Try a limit first.** \`mode: shadow\` counts what the rule would decline, and declines nothing.
- **\`strict\`** keeps a client out for as long as it keeps hammering; good for logins, hard on clients that retry.
- **\`absent\`** decides about requests without such a key: without a session, or without the header. \`address\` counts
  them by their address, so that dropping the cookie gains nothing; \`skip\` leaves them to the other rules. A client
  chooses its headers: behind \`key: header:x-api-key\` something must refuse keys that nobody has given out, or have
  a rule of \`key: ip\` beside it.
- **A list joins keys**: \`[ip, header:x-api-key]\` counts each API key at each address. It has no key where one of its
  parts is missing, whatever the part.
- **\`match\`** needs no code: the rule is for some methods and paths, wherever the gate is mounted.

\`\`\`yaml
rules:
  - { name: login, key: ip, limit: 5, window: 10m, match: { methods: [POST], paths: [/login] } }
  - { name: api, key: 'header:x-api-key', limit: 1000, window: 1h, absent: address, match: { paths: ['/api/*'] } }
  - { name: pair, key: [ip, 'header:x-api-key'], limit: 100, window: 1m }
\`\`\`

### Paths

A path is compared as Express routes it: as it stands in the request, not decoded, from the root of the app whatever
router the gate is mounted in. Letter case and slashes at the end count only where the app has \`case sensitive
routing\` or \`strict routing\`. A router of its own has settings of its own: make it \`express.Router({ caseSensitive:
true, strict: true })\` as the app is, or its routes answer to spellings that the rule does not know. A \`*\` at the
end stands for one or more characters, so \`/api/*\` is not \`/api\`: list both. Parameters such as \`:id\` are not known.

## Exempt clients

\`\`\`yaml
exempt:
  ips: [127.0.0.1, 10.0.0.0/8, '2001:db8::/32']
\`\`\`

Their requests pass, are counted as \`exempt\`, charged to no rule and told of no limit. What is compared is the client's
address as \`trust proxy\` has it, by its bits: a range of IPv4 holds the IPv4-mapped spellings too. Behind a proxy that
is not trusted every client has the proxy's address; exempt that, and nobody is limited.

## The calendar

\`\`\`yaml
timeZone: America/New_York
weekStartsOn: sunday
\`\`\`

Requests are tallied in the minutes, hours, days and weeks of \`timeZone\`. It is a name of the IANA database that
Node.js knows, in any letter case; \`node -p process.versions.tz\` names the edition. Offsets such as \`+02:00\` are
refused, for they say nothing of daylight saving: where one is meant all year, \`Etc/GMT-2\` is two hours *ahead* of
UTC. So are abbreviations such as \`BST\`, which mean several zones. \`tallygate check\` says what time it is there.

- **A day** lasts from the first instant of its date to the first instant of the next date there is: 23 or 25 hours
  where the clock is shifted. Where midnight is skipped it begins after the gap; where midnight occurs twice, with the
  first; and a date that was skipped has no day.
- **A week** lasts from the first instant of its first day to that of the next week's. It is called by the ISO 8601
  week of its Thursday, \`2026-W49\`, whatever day it begins on.
- **An hour** begins where the clock shows a full hour, or where it is shifted within one; so does **a minute**. The
  hour that occurs twice is two, and their names tell them apart: \`2025-10-26T02:00+02:00\`, \`2025-10-26T02:00+01:00\`.
- **Another zone** for the same database: counts stay in the windows they were counted in, and the totals as they are.
  A window that is under way begins anew, unless it has the same start in both zones.

Limits do not follow the calendar: a rule's window of \`1d\` is 24 hours, and where it has a fixed end that is midnight
in UTC.

## The bundled app

Its settings are environment variables: \`npx tallygate serve --help\` lists them. In production it does not start
without \`SESSION_SECRET\`, and without \`TALLYGATE_ADMIN_TOKEN\` the admin routes answer 404.

\`GET /api/parse?url=…\` answers what a page says of itself, as JSON; encode the address, or what follows an \`&\` in it
is lost. Pages come from public addresses and ports 80 and 443 alone, within five seconds and a megabyte, and are kept for
24 hours in the database. Rules with \`function: parse-url\` are charged for a real fetch alone: not for a page that is
kept, nor for one that another request is fetching already. Errors are problem documents: 400 for what is no such URL,
403 for one that leads inside, 429, 502 where there was no page to be had, 504 where it took too long. A request that
is itself a fetch of such an app, by its header field \`tallygate-fetch\`, is answered 403.

\`TALLYGATE_URL_ALLOW\` lets addresses inside through, each with its port: \`127.0.0.1/32:8080, [fd00::/8]:443\`. Whoever
may call the route can then read what is there; the log warns of it at each start.
`)
}

export function metricsPage(): Promise<string> {
  const rows = Object.values(metrics).map((row: MetricRow) => [
    `\`${row.name}\``,
    row.type,
    row.labels.map((name) => label(row, name)).join(', '),
    row.help,
    aggregation[row.aggregate],
  ])
  return page(`# Metrics

${notice}

\`GET /metrics\` answers in Prometheus's text format 0.0.4. Every series is there from the first scrape, at 0 where nothing
has happened, so that \`rate()\` sees the first event. No label is ever made from what a client sends: the number of
series follows from the rules (of the bundled app's histogram also from its routes, a hundred at most).

${table(['metric', 'type', 'labels', 'meaning', 'over processes'], rows)}

Counters begin at 0 with the process; what outlives it is in \`tallygate_window_requests\`, read from the database.
Beside these come prom-client's default metrics of the process (\`process_*\`, \`nodejs_*\`), less three gauges that are
named like counters.

The workers of a node:cluster whose primary collects have [one answer](library.md#several-processes): what adds up is added
up, the highest taken, and of what each has for itself the least shown: the oldest flush, the earliest start.

## Questions, as queries

Share of requests declined:

\`\`\`promql
sum(rate(tallygate_requests_total{outcome="declined"}[5m]))
  / (sum(rate(tallygate_requests_total{outcome!="exempt"}[5m])) > 0)
\`\`\`

Which rule declines, attempts per second:

\`\`\`promql
sum by (rule) (rate(tallygate_rule_decisions_total{mode="enforce",verdict="over"}[5m]))
\`\`\`

How close each rule is to its limit:

\`\`\`promql
max by (rule) (tallygate_rule_utilization_ratio)
\`\`\`

Requests today, each database counted once however many processes share it:

\`\`\`promql
sum(max by (database, outcome) (tallygate_window_requests{window="day",period="current"}))
\`\`\`
`)
}

const aggregation = { sum: 'add up', max: 'take the highest', one: 'look at each' } as const

function label(row: MetricRow, name: string): string {
  const shared: Readonly<Record<string, readonly string[]>> = labelValues
  const values = row.values?.[name] ?? shared[name]
  return values === undefined ? `\`${name}\`` : `\`${name}\` = ${values.join(', ')}`
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

export async function page(text: string): Promise<string> {
  const config = await resolveConfig('docs/configuration.md')
  return format(text, { ...config, parser: 'markdown' })
}
