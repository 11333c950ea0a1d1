import { systemClock } from '../../../../platform/process/clock.ts'
import { secureRandom } from '../../../../platform/process/random.ts'
import { createLogSink, isJournal } from '../../../../platform/telemetry/log-sink.ts'
import { createLogTap } from '../../../../platform/telemetry/log-tap.ts'
import { createLogger } from '../../../../platform/telemetry/logger.ts'
import { loadSettings, type Settings } from '../../../../processes/compose/config/settings.ts'
import type { ReloadingDeps } from '../../../../processes/compose/process/deps.ts'
import { runUntilSignal, type StartedProcess } from '../../../../processes/compose/process/run-until-signal.ts'
import { outliveClosedPipe } from '../../../closed-pipe.ts'
import type { CliContext, ServiceFlags } from '../../../define.ts'
import { terminalLine } from '../../../output/log-line.ts'

type StartProcess = (settings: Settings, deps: Required<ReloadingDeps>) => Promise<StartedProcess>

/** The command that runs a process which takes no other flags. */
export function runnerOf(start: StartProcess) {
  return function (this: CliContext, flags: ServiceFlags): Promise<void> {
    return serveUntilSignal(this, flags, start)
  }
}

/**
 * Runs a process until a signal or `sluice drain`. New files are private (umask 077); the log goes to standard output, as lines to read on a terminal and
 * else as JSON.
 */
export async function serveUntilSignal(context: CliContext, flags: ServiceFlags, start: StartProcess): Promise<void> {
  const { process } = context
  process.umask(0o077)
  outliveClosedPipe(process)
  const settings = await loadSettings(context, flags)
  const { stdout } = process
  const isText = flags.log === undefined ? stdout.isTTY : flags.log === 'text'
  const sink = createLogSink({ fd: 1, isJournal: !isText && isJournal(1, process.env) })
  const logTap = createLogTap(isText ? { write: (line) => sink.write(`${terminalLine(line, stdout)}\n`) } : sink)
  const log = createLogger({ level: settings.config.log.level, destination: logTap })
  const readSettings = () => loadSettings(context, flags)
  const deps = { log, logTap, clock: systemClock, random: secureRandom, env: process.env, readSettings }
  await runUntilSignal(process, log, (starting) => start(settings, { ...deps, starting }))
}
