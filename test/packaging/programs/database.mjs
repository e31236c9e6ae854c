// A gate with the database that is named: `database.mjs FILE`. Prints the error that it throws, as JSON.
import { tallygate } from 'tallygate'

const rules = [{ name: 'ip', key: 'ip', limit: 2, window: '1h' }]
try {
  await tallygate({ rules, database: process.argv[2] }).close()
  process.stdout.write(JSON.stringify({ code: null }))
} catch ({ name, code, message }) {
  process.stdout.write(JSON.stringify({ name, code, message }))
}
