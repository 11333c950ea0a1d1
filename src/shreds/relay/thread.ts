import { messageOf, ServiceError } from '../../core/error.ts'
import { loadNativeSha256 } from '../../platform/native/sha256.ts'
import { loadSha256Lanes } from '../../platform/native/sha256-lanes.ts'
import { scheduleThisThread } from '../../platform/native/thread-schedule.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { openWorkerPort } from '../../platform/process/worker.ts'
import { openDescriptorList } from '../../platform/udp/descriptor-list.ts'
import { openUdpPort } from '../../platform/udp/open-port.ts'
import { createNodeSha256 } from '../../solana/crypto/node-sha256.ts'
import { HELD_PACKETS_MAX } from './held-packets.ts'
import type { FromRelay, RelayOptions, ToRelay } from './protocol.ts'
import { runRelay } from './relay.ts'
import { warmUp } from './warm-up.ts'

/** Entry file of the relay thread. Started by `link.ts` with its options; ends after a `stop` message. */
const link = openWorkerPort<ToRelay, FromRelay>()
if (link === undefined) throw new Error('this file runs only as a worker thread')
const options = link.data as RelayOptions
try {
  const sha256 = (await loadNativeSha256()) ?? createNodeSha256()
  const lanes = options.signatures === 'auto' ? await loadSha256Lanes() : undefined
  await warmUp(options, { sha256, lanes, clock: systemClock })
  const { port, note } = await openUdpPort(
    { ...options.port, spareCells: options.signatureMemory === undefined ? 0 : HELD_PACKETS_MAX },
    { clock: systemClock, descriptors: options.descriptorMemory && openDescriptorList(options.descriptorMemory) },
  )
  using _open = port
  // Real-time priority only now: a start must not stop the other threads.
  const schedule = await scheduleThisThread(options.schedule, 2)
  const { engine, address, receiveBufferBytes, hasKernelTimes } = port
  link.post({ kind: 'ready', engine, note, address, receiveBufferBytes, schedule, hasKernelTimes })
  // Node's own sockets need the event loop, which nothing wakes for a verdict.
  const signatureMemory = engine === 'sendmmsg' ? options.signatureMemory : undefined
  await runRelay(
    { ...options, signatureMemory },
    { port, clock: systemClock, sha256, lanes, post: link.post, poll: link.poll },
  )
} catch (error) {
  const known = error instanceof ServiceError ? error : undefined
  link.post({ kind: 'failed', code: known?.code ?? 'internal', message: messageOf(error), fix: known?.fix })
}
