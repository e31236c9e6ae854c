import type { Command } from 'commander'

export function addTraffic(program: Command): void {
  program.command('traffic')
}
