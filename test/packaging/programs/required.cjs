// Every entry by `require`, the ones there have always been used once.
const manifest = require('tallygate/package.json')
const use = require('./use.cjs')

const entries = {}
for (const entry of Object.keys(manifest.exports)) {
  if (!entry.endsWith('.json')) entries[entry] = require(`tallygate${entry.slice(1)}`)
}
void use(entries, manifest)
