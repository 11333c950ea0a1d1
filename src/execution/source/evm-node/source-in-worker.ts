import type { BaseDeps } from '../../../platform/process/base-deps.ts'
import { startWriterInWorker } from '../../../platform/ring-file/writer-in-worker.ts'
import type { Logger, LogLevel } from '../../../platform/telemetry/logger.ts'
import type { EvmNodeOptions } from './source.ts'
import type { FromSourceThread } from './source-thread.ts'

const RESET_AFTER_MS = 60_000
/** A request may be under way. Terminating the thread while it loads the native library for mapping would crash the process. */
const END_MS = 10_000
/** Parsed traces are garbage with the next block. */
const YOUNG_MIB = 32
const THREAD = new URL('./source-thread.ts', import.meta.url)

/** Runs the source of an EVM node in a worker thread, on the system's clock. A restarted thread begins a new ring, which readers report. */
export function startEvmNodeWorker(
  options: EvmNodeOptions,
  { log, clock, random }: BaseDeps,
): Promise<AsyncDisposable> {
  return startWriterInWorker<never, FromSourceThread>(
    { entry: THREAD, data: options, resetAfterMs: RESET_AFTER_MS, endMs: END_MS, youngMib: YOUNG_MIB },
    {
      clock,
      random,
      onMessage(message, _thread, ready) {
        if (message.kind === 'log') relay(message.line, log)
        else ready()
      },
      onRestart: ({ error, delayMs }) =>
        log.error({ reason: error.message, delayMs }, 'the thread that follows the EVM node stopped and is restarted'),
    },
  )
}

/** The record gets the time and the level filter of this thread. */
function relay(line: string, log: Logger): void {
  const { level, time: _time, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
  log[level as Exclude<LogLevel, 'silent'>](fields, String(msg))
}
