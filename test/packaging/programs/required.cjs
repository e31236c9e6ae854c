// Every entry by `require`, the ones there have always been used once. Prints what it found, as JSON.
const manifest = require('tallygate/package.json')

const names = {}
const entries = {}
for (const entry of Object.keys(manifest.exports)) {
  if (entry.endsWith('.json')) continue
  entries[entry] = require(`tallygate${entry.slice(1)}`)
  names[entry] = Object.keys(entries[entry]).toSorted()
}
const { tallygate } = entries['.']
const { createLimiter } = entries['./limiter']
const { manualClock } = entries['./testing']

const clock = manualClock(1_760_000_000_000)
const rules = [{ name: 'ip', key: 'ip', limit: 1, window: '1m' }]
const limiter = createLimiter({ rules, clock })
const decide = () => limiter.decide({ ip: '203.0.113.7' }).allowed
const decisions = [decide(), decide()]
clock.advance(120_000)
decisions.push(decide())
const gate = tallygate({ rules, clock })
void gate.stats().then(async ({ scope }) => {
  await gate.close()
  process.stdout.write(JSON.stringify({ names, decisions, scope, version: manifest.version }))
})
