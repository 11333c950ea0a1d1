import { systemClock } from '../../../platform/process/clock.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import { openServiceManager, type ServiceManager } from '../../../platform/process/service-manager.ts'
import { type SignalSource, watchSignals } from '../../../platform/process/signals.ts'
import type { Logger } from '../../../platform/telemetry/logger.ts'

export type StartedProcess = {
  readonly lifecycle: Lifecycle
  readonly reload?: () => Promise<unknown>
  /** The exit code of a clean stop; 0 by default. */
  readonly exitCode?: () => number
}

type Process = SignalSource & {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pid: number
  exitCode?: number | string | null | undefined
  exit(): void
}

/** Time for the event loop to drain after everything is closed. */
const LINGER_MS = 2000

/** Exit code of a process that Ctrl-C ended before it was started: 128 and the number of the signal, as of every program. */
const INTERRUPTED = 130

/**
 * Starts a process and waits for its end. A signal during the start aborts it: what was opened is closed in order, and an error that follows from the
 * abort is not reported. A second signal ends the process at once.
 */
export async function runUntilSignal(
  process: Process,
  log: Logger,
  start: (starting: AbortSignal) => Promise<StartedProcess>,
): Promise<void> {
  const now: { started?: StartedProcess; early?: string; serviceManager?: ServiceManager } = {}
  const aborted = new AbortController()
  using _signals = watchSignals({
    source: process,
    log,
    onStop(signal) {
      if (now.started !== undefined) return now.started.lifecycle.stop(signal)
      if (now.early !== undefined) return endNow(process, signal)
      now.early = signal
      log.info({ signal }, 'stopping before the start is complete')
      now.serviceManager?.stopping()
      aborted.abort()
    },
    onReload: async () => void (await now.started?.reload?.()),
  })
  using serviceManager = await openServiceManager({ env: process.env, pid: process.pid, clock: systemClock, log })
  now.serviceManager = serviceManager
  if (now.early === undefined) serviceManager.starting()
  const started = await start(aborted.signal).catch((error: unknown) => {
    if (now.early === undefined) throw error
  })
  if (started === undefined) {
    if (now.early === 'SIGINT') process.exitCode = INTERRUPTED
    setTimeout(() => process.exit(), LINGER_MS).unref()
    return
  }
  now.started = started
  started.lifecycle.onDraining(() => serviceManager.stopping())
  serviceManager.ready()
  if (now.early !== undefined) started.lifecycle.stop(now.early)
  const { clean } = await started.lifecycle.stopped
  const code = clean ? (started.exitCode?.() ?? 0) : 1
  const exitCode = clean && now.early === 'SIGINT' ? INTERRUPTED : code
  if (exitCode !== 0) process.exitCode = exitCode
  // What is still open is not closed any more, and what it would count now is saved by nobody.
  if (!clean) return process.exit()
  setTimeout(() => process.exit(), LINGER_MS).unref()
}

function endNow(process: Process, signal: string): void {
  process.exitCode = signal === 'SIGINT' ? INTERRUPTED : 1
  process.exit()
}
