import { resolve } from 'node:path'
import { listenAddress } from '../../../contract/listen-address.ts'
import type { ListenerOptions } from '../../../platform/net/listener.ts'

/** The same listener on another port: the one that was found free, or that the instance before had. */
export function withPort<Option extends { readonly listen: string }>(option: Option, port: number): Option {
  return { ...option, listen: `${option.listen.slice(0, option.listen.lastIndexOf(':'))}:${port}` }
}

/** Every TCP listener a process can have, as its metrics name it. */
export const LISTENERS = ['metrics', 'rpc', 'ws', 'grpc', 'entries', 'sender', 'execution', 'indexer', 'admin'] as const

/**
 * The listener of a section of the configuration. Certificate paths are relative to the folder of the config file. `mayAccept` is false while memory is
 * short, and new connections are then refused.
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
