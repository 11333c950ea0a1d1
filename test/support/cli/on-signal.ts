import { once } from 'node:events'
import { sluiceHere } from './in-process.ts'

/** Runs a command line that is loaded first and starts on a signal, so that a test can kill it while it works and not while it loads. */
if (import.meta.main) {
  const words = process.argv.slice(2)
  const env = { SLUICE_STATE: process.env['SLUICE_STATE'] ?? '' }
  await sluiceHere(['backup', '--help'], env)
  await import('../../../src/cli/commands/operate/run/backup.ts')
  await import('../../../src/cli/commands/operate/run/restore.ts')
  process.stdout.write('ready\n')
  await once(process.stdin, 'data')
  await sluiceHere(words, env)
  process.exit(0)
}
