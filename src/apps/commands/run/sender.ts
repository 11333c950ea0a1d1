import { systemClock } from '../../../host/clock.ts'
import { createLogSink } from '../../../host/log-sink.ts'
import { createLogTap } from '../../../host/log-tap.ts'
import { createLogger } from '../../../host/logger.ts'
import { secureRandom } from '../../../host/random.ts'
import { runUntilSignal } from '../../run-until-signal.ts'
import { startSenderAlone } from '../../sender-alone.ts'
import type { CliContext, CommonFlags } from '../define.ts'
import { loadSettings } from '../settings.ts'

/** The sender alone, until a signal ends it. */
export async function sender(this: CliContext, flags: CommonFlags): Promise<void> {
  const { process } = this
  process.umask(0o077)
  const settings = await loadSettings(this, flags)
  const logTap = createLogTap(createLogSink({ fd: 1 }))
  const log = createLogger({ level: settings.config.log.level, destination: logTap })
  await runUntilSignal(process, log, () =>
    startSenderAlone(settings, { log, logTap, clock: systemClock, random: secureRandom, env: process.env }),
  )
}
