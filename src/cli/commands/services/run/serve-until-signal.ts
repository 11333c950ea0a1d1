import { systemClock } from '../../../../platform/process/clock.ts'
import { secureRandom } from '../../../../platform/process/random.ts'
import { createLogSink } from '../../../../platform/telemetry/log-sink.ts'
import { createLogTap } from '../../../../platform/telemetry/log-tap.ts'
import { createLogger } from '../../../../platform/telemetry/logger.ts'
import { loadSettings, type Settings } from '../../../../processes/compose/config/settings.ts'
import type { Deps } from '../../../../processes/compose/process/deps.ts'
import { runUntilSignal, type Started } from '../../../../processes/compose/process/run-until-signal.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'

/** Runs a process until a signal or `sluice drain`. New files are private (umask 077); the log goes to standard output. */
export async function serveUntilSignal(
  context: CliContext,
  flags: CommonFlags,
  start: (settings: Settings, deps: Required<Deps>) => Promise<Started>,
): Promise<void> {
  const { process } = context
  process.umask(0o077)
  const settings = await loadSettings(context, flags)
  const logTap = createLogTap(createLogSink({ fd: 1 }))
  const log = createLogger({ level: settings.config.log.level, destination: logTap })
  const deps = { log, logTap, clock: systemClock, random: secureRandom, env: process.env }
  await runUntilSignal(process, log, () => start(settings, deps))
}
