// What both programs do once every entry is loaded, the one way or the other. Prints what it found, as JSON.
module.exports = async function use(entries, { version }) {
  const names = Object.fromEntries(
    Object.entries(entries).map(([entry, loaded]) => [entry, Object.keys(loaded).toSorted()]),
  )
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
  const { scope } = await gate.stats()
  await gate.close()
  process.stdout.write(JSON.stringify({ names, decisions, scope, version }))
}
