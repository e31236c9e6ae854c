#!/usr/bin/env node
/*
 * The command line. Exit status: 0 well, 1 something was found wrong, 2 wrong usage.
 */
import { Command, CommanderError } from 'commander'
import { TallygateError } from '../core/errors.js'
import { version } from '../gate/version.js'
import { addCheck } from './check.js'
import { addServe } from './serve.js'
import { addTraffic } from './traffic.js'

const program = new Command('tallygate')
  .description('A rate limiter for Express that shows its work.')
  .version(version)
  .showHelpAfterError('(tallygate --help shows what there is)')
  .exitOverride()

// Subcommands inherit exitOverride only if it is set before they are added.
addServe(program)
addCheck(program)
addTraffic(program)

try {
  await program.parseAsync()
} catch (error) {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? 0 : 2
  } else if (error instanceof TallygateError) {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  } else {
    throw error
  }
}
