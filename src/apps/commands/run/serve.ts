import { systemClock } from '../../../host/clock.ts'
import { createLogger } from '../../../host/logger.ts'
import { secureRandom } from '../../../host/random.ts'
import { watchSignals } from '../../../host/signals.ts'
import { startAll } from '../../all.ts'
import type { CliContext, CommonFlags } from '../define.ts'
import { loadSettings } from '../settings.ts'

/** Everything in one process, until a signal or `sluice drain` ends it. */
export async function serve(this: CliContext, flags: CommonFlags & { demo?: boolean }): Promise<void> {
  const { process } = this
  process.umask(0o077)
  const readSettings = () => loadSettings(this, flags)
  const settings = await readSettings()
  const log = createLogger({ level: settings.config.log.level })
  const { lifecycle, reload } = await startAll(
    settings,
    { demo: flags.demo ?? settings.loaded.file === undefined },
    {
      log,
      clock: systemClock,
      random: secureRandom,
      env: process.env,
      readSettings,
      showCard(card) {
        process.stdout.write(`\n${card}\n`)
      },
    },
  )
  using _signals = watchSignals({
    source: process,
    log,
    onStop: (signal) => lifecycle.stop(signal),
    onReload: async () => void (await reload()),
  })
  const { clean } = await lifecycle.stopped
  if (!clean) process.exitCode = 1
  // Whatever still holds the loop open after everything was closed must not hold the process.
  setTimeout(() => process.exit(), 2000).unref()
}
