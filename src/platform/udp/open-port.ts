import type { Clock } from '../../core/clock.ts'
import { messageOf, ServiceError } from '../../core/error.ts'
import { openUdpBatchPort } from './batch-port.ts'
import { openUdpFallbackPort } from './fallback-port.ts'
import type { UdpPort, UdpPortOptions } from './port.ts'
import { loadUdpCalls } from './system-calls.ts'

/** Opens the port the fastest way this machine has. `note` says why it is not the fastest there is. */
export async function openUdpPort(
  options: UdpPortOptions,
  deps: { readonly clock: Pick<Clock, 'monotonicMs'> },
): Promise<{ readonly port: UdpPort; readonly note?: string }> {
  if (options.engine === 'dgram') return { port: await openUdpFallbackPort(options) }
  const calls = await loadUdpCalls().catch((error: unknown) => messageOf(error))
  if (typeof calls !== 'string') return { port: openUdpBatchPort(options, { ...deps, calls }) }
  if (options.engine === 'sendmmsg') {
    throw new ServiceError('config-invalid', `batches of packets cannot be used here: ${calls}`, {
      fix: 'Leave the engine out of the config, so that the fastest that works is taken.',
    })
  }
  return { port: await openUdpFallbackPort(options), note: calls }
}
