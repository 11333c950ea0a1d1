import type { Clock } from '../../core/clock.ts'
import { messageOf, ServiceError } from '../../core/error.ts'
import { openUdpBatchPort } from './batch-port.ts'
import type { DescriptorList } from './descriptor-list.ts'
import { openUdpFallbackPort } from './fallback-port.ts'
import type { UdpPort, UdpPortOptions } from './port.ts'
import { loadUdpCalls } from './system-calls.ts'

/** Opens the port with the fastest engine of this machine. `note` is the reason where that is not sendmmsg. */
export async function openUdpPort(
  options: UdpPortOptions,
  deps: {
    readonly clock: Pick<Clock, 'monotonicMs'>
    /** The open sockets of a thread that may be terminated: Node does not close them then. */
    readonly descriptors?: DescriptorList | undefined
  },
): Promise<{ readonly port: UdpPort; readonly note?: string }> {
  if (options.engine === 'dgram') return { port: await openUdpFallbackPort(options, deps) }
  const calls = await loadUdpCalls().catch((error: unknown) => messageOf(error))
  if (typeof calls !== 'string') return { port: openUdpBatchPort(options, { ...deps, calls }) }
  if (options.engine === 'sendmmsg') {
    throw new ServiceError('config-invalid', `the engine sendmmsg does not work on this machine: ${calls}`, {
      fix: 'Remove the engine from the config, so that the fastest one that works is used.',
    })
  }
  return { port: await openUdpFallbackPort(options, deps), note: calls }
}
