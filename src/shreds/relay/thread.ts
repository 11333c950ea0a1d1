import { messageOf, ServiceError } from '../../core/error.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { openWorkerPort } from '../../platform/process/worker.ts'
import { openUdpPort } from '../../platform/udp/open-port.ts'
import type { FromRelay, RelayOptions, ToRelay } from './protocol.ts'
import { runRelay } from './relay.ts'

/** Entry file of the relay thread. Started by `link.ts` with its options; ends after a `stop` message. */
const link = openWorkerPort<ToRelay, FromRelay>()
if (link === undefined) throw new Error('this file runs only as a worker thread')
const options = link.data as RelayOptions
try {
  const { port, note } = await openUdpPort(options.port, { clock: systemClock })
  using _open = port
  const { engine, address, receiveBufferBytes } = port
  link.post({ kind: 'ready', engine, note, address, receiveBufferBytes })
  await runRelay(options, { port, clock: systemClock, post: link.post, poll: link.poll })
} catch (error) {
  const known = error instanceof ServiceError ? error : undefined
  link.post({ kind: 'failed', code: known?.code ?? 'internal', message: messageOf(error), fix: known?.fix })
}
