import { systemClock } from '../../../platform/process/clock.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import { openSupervisor } from '../../../platform/process/service-manager.ts'
import { type SignalSource, watchSignals } from '../../../platform/process/signals.ts'
import type { Logger } from '../../../platform/telemetry/logger.ts'

export type Started = {
  readonly lifecycle: Lifecycle
  readonly reload?: () => Promise<unknown>
  /** What an end in good order is worth; 0 without it. */
  readonly exitCode?: () => number
}

type Process = SignalSource & {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pid: number
  exitCode?: number | string | null | undefined
  exit(): void
}

/** What still holds the loop open after everything was closed must not hold the process. */
const LINGER_MS = 2000

/**
 * Starts a process and waits for its end. Signals are heard from the beginning: one that comes during the start ends it as soon as there is something
 * to end in order.
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
  using supervisor = await openSupervisor({ env: process.env, pid: process.pid, clock: systemClock, log })
  const started = await start()
  now.started = started
  started.lifecycle.onDraining(() => supervisor.stopping())
  supervisor.ready()
  if (now.early !== undefined) started.lifecycle.stop(now.early)
  const { clean } = await started.lifecycle.stopped
  const exitCode = clean ? (started.exitCode?.() ?? 0) : 1
  if (exitCode !== 0) process.exitCode = exitCode
  setTimeout(() => process.exit(), LINGER_MS).unref()
}
