import { resolve } from 'node:path'
import { listenAddress } from '../contract/listener-option.ts'
import type { ListenerOptions } from '../host/listener.ts'

/** A listener section of the config as the host room wants it; its files are named from the folder of the config file. */
export function listenerOf(option: Parameters<typeof listenAddress>[0], folder: string): ListenerOptions {
  const address = listenAddress(option)
  if (address.tls === undefined) return address
  return { ...address, tls: { cert: resolve(folder, address.tls.cert), key: resolve(folder, address.tls.key) } }
}
