import { systemClock } from '../../../platform/process/clock.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import { openServiceManager } from '../../../platform/process/service-manager.ts'
import { type SignalSource, watchSignals } from '../../../platform/process/signals.ts'
import type { Logger } from '../../../platform/telemetry/logger.ts'

export type Started = {
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

/**
 * Starts a process and waits for its end. A signal during the start stops the process in order as soon as the start has finished.
 */
export async function runUntilSignal(process: Process, log: Logger, start: () => Promise<Started>): Promise<void> {
  const now: { started?: Started; early?: string } = {}
  using _signals = watchSignals({
    source: process,
    log,
    onStop(signal) {
      if (now.started === undefined) now.early = signal
      else now.started.lifecycle.stop(signal)
    },
    onReload: async () => void (await now.started?.reload?.()),
  })
  using serviceManager = await openServiceManager({ env: process.env, pid: process.pid, clock: systemClock, log })
  const started = await start()
  now.started = started
  started.lifecycle.onDraining(() => serviceManager.stopping())
  serviceManager.ready()
  if (now.early !== undefined) started.lifecycle.stop(now.early)
  const { clean } = await started.lifecycle.stopped
  const exitCode = clean ? (started.exitCode?.() ?? 0) : 1
  if (exitCode !== 0) process.exitCode = exitCode
  setTimeout(() => process.exit(), LINGER_MS).unref()
}
