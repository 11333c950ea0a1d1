import { ServiceError } from '../../../core/error.ts'
import type { BaseDeps } from '../../../platform/process/base-deps.ts'
import { type InstanceEvents, supervise } from '../../../platform/process/supervise.ts'
import { startWorker, type WorkerThread } from '../../../platform/process/worker.ts'
import type { Logger, LogLevel } from '../../../platform/telemetry/logger.ts'
import type { EvmNodeOptions } from './source.ts'
import type { FromSourceThread } from './source-thread.ts'

const RESTART = { firstMs: 500, maxMs: 30_000 }
/** A thread that ended sooner counts as one that cannot start. */
const RESET_AFTER_MS = 60_000
/** A request may be under way. Terminating the thread while it loads the native library for mapping would crash the process. */
const END_MS = 10_000
/** Parsed traces are garbage with the next block. */
const YOUNG_MIB = 32
const THREAD = new URL('./source-thread.ts', import.meta.url)

/** Runs the source of an EVM node in a worker thread, on the system's clock. A restarted thread begins a new ring, which readers report. */
export async function startEvmNodeWorker(
  options: EvmNodeOptions,
  { log, clock, random }: BaseDeps,
): Promise<AsyncDisposable> {
  function start(events: InstanceEvents): WorkerThread<never> {
    return startWorker<never, FromSourceThread>(THREAD, options, {
      onMessage(message) {
        if (message.kind === 'log') relay(message.line, log)
        else if (message.kind === 'failed') events.failed(new ServiceError('ring-unwritable', message.message))
        else events.ready()
      },
      onDeath: events.failed,
      endMs: END_MS,
      youngMib: YOUNG_MIB,
    })
  }

  const supervised = supervise(
    { backoff: RESTART, resetAfterMs: RESET_AFTER_MS, firstStartsMax: 1 },
    {
      clock,
      random,
      start,
      onRestart: ({ error, delayMs }) =>
        log.error({ reason: error.message, delayMs }, 'the thread that follows the EVM node stopped and is restarted'),
    },
  )
  await supervised.started
  return supervised
}

/** The record gets the time and the level filter of this thread. */
function relay(line: string, log: Logger): void {
  const { level, time: _time, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
  log[level as Exclude<LogLevel, 'silent'>](fields, String(msg))
}
