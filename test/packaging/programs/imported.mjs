// Every entry by `import`, the ones there have always been used once.
import manifest from 'tallygate/package.json' with { type: 'json' }
import use from './use.cjs'

const entries = {}
for (const entry of Object.keys(manifest.exports)) {
  if (!entry.endsWith('.json')) entries[entry] = await import(`tallygate${entry.slice(1)}`)
}
await use(entries, manifest)
