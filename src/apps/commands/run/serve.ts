import { systemClock } from '../../../host/clock.ts'
import { createLogSink } from '../../../host/log-sink.ts'
import { createLogTap } from '../../../host/log-tap.ts'
import { createLogger } from '../../../host/logger.ts'
import { secureRandom } from '../../../host/random.ts'
import { startAll } from '../../all.ts'
import { runUntilSignal } from '../../run-until-signal.ts'
import type { CliContext, CommonFlags } from '../define.ts'
import { loadSettings } from '../settings.ts'

/** Everything in one process, until a signal or `sluice drain` ends it. */
export async function serve(this: CliContext, flags: CommonFlags & { demo?: boolean }): Promise<void> {
  const { process } = this
  process.umask(0o077)
  const readSettings = () => loadSettings(this, flags)
  const settings = await readSettings()
  const logTap = createLogTap(createLogSink({ fd: 1 }))
  const log = createLogger({ level: settings.config.log.level, destination: logTap })
  await runUntilSignal(process, log, () =>
    startAll(
      settings,
      { demo: flags.demo ?? settings.loaded.file === undefined },
      {
        log,
        logTap,
        clock: systemClock,
        random: secureRandom,
        env: process.env,
        readSettings,
        showCard(card) {
          process.stdout.write(`\n${card}\n`)
        },
      },
    ),
  )
}
