import { messageOf } from '../../../core/error.ts'
import { systemClock } from '../../../platform/process/clock.ts'
import { secureRandom } from '../../../platform/process/random.ts'
import { openWorkerPort } from '../../../platform/process/worker.ts'
import type { WriterFailed } from '../../../platform/ring-file/writer-in-worker.ts'
import { createLogger } from '../../../platform/telemetry/logger.ts'
import { type EvmNodeOptions, startEvmNodeSource } from './source.ts'

export type FromSourceThread =
  | { kind: 'started' }
  /** A record of the log, as JSON. */
  | { kind: 'log'; line: string }
  | WriterFailed

/** Entry point of the thread that follows an EVM node. Parsing the traces of a block takes up to seconds. */
const port = openWorkerPort<never, FromSourceThread>()
if (port !== undefined) {
  try {
    const write = (line: string): void => port.post({ kind: 'log', line })
    const log = createLogger({ level: 'trace', destination: { write } })
    const deps = { log, clock: systemClock, random: secureRandom }
    const source = await startEvmNodeSource(port.data as EvmNodeOptions, deps)
    port.onEnd(() => void source[Symbol.asyncDispose]())
    port.post({ kind: 'started' })
  } catch (error) {
    port.post({ kind: 'failed', message: messageOf(error) })
  }
}
