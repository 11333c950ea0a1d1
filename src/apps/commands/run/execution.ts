import { systemClock } from '../../../host/clock.ts'
import { createLogSink } from '../../../host/log-sink.ts'
import { createLogTap } from '../../../host/log-tap.ts'
import { createLogger } from '../../../host/logger.ts'
import { secureRandom } from '../../../host/random.ts'
import { startExecutionAlone } from '../../execution-alone.ts'
import { runUntilSignal } from '../../run-until-signal.ts'
import type { CliContext, CommonFlags } from '../define.ts'
import { loadSettings } from '../settings.ts'

/** The execution service alone, until a signal ends it or its source falls silent. */
export async function execution(this: CliContext, flags: CommonFlags): Promise<void> {
  const { process } = this
  process.umask(0o077)
  const settings = await loadSettings(this, flags)
  const logTap = createLogTap(createLogSink({ fd: 1 }))
  const log = createLogger({ level: settings.config.log.level, destination: logTap })
  await runUntilSignal(process, log, () =>
    startExecutionAlone(settings, { log, logTap, clock: systemClock, random: secureRandom, env: process.env }),
  )
}
