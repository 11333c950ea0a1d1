import { messageOf } from '../../core/error.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { openWorkerPort } from '../../platform/process/worker.ts'
import type { DecodedThreadOptions, FromDecoded, ToDecoded } from './protocol.ts'
import { runDecoded } from './run.ts'

/** Entry file of the engine's thread. Started by `service.ts` with its options; ends after a `stop` message. */
const link = openWorkerPort<ToDecoded, FromDecoded>()
if (link === undefined) throw new Error('this file runs only as a worker thread')
try {
  const options = link.data as DecodedThreadOptions
  runDecoded(options, { clock: systemClock, post: link.post, poll: link.poll })
} catch (error) {
  link.post({ kind: 'failed', message: messageOf(error) })
}
