import { resolve } from 'node:path'
import { listenAddress } from '../../../contract/listener-option.ts'
import type { ListenerOptions } from '../../../platform/net/listener.ts'

/**
 * A listener section of the config as the host room wants it; its files are named from the folder of the config file. A door for customers
 * says when it takes nobody in, for want of memory.
 */
export function listenerOf(
  option: Parameters<typeof listenAddress>[0],
  folder: string,
  mayAccept?: () => boolean,
): ListenerOptions {
  const address = { ...listenAddress(option), mayAccept }
  if (address.tls === undefined) return address
  return { ...address, tls: { cert: resolve(folder, address.tls.cert), key: resolve(folder, address.tls.key) } }
}
