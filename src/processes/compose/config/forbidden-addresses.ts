import { isIP } from 'node:net'
import { objectToAddress, SET_ALLOW_PRIVATE } from '../../../platform/net/pinned-address.ts'

const SERVERS = ['rpc', 'ws', 'grpc'] as const
export type NodeAddresses = { readonly [Server in (typeof SERVERS)[number]]?: string | undefined }

type Forbidden = {
  readonly server: (typeof SERVERS)[number]
  readonly message: string
  /** The configuration can allow it. */
  readonly isOnlyPrivate: boolean
}

/** The addresses of a node to which no connection is made. */
export function findForbidden(node: NodeAddresses, allowPrivate: boolean): Forbidden[] {
  return SERVERS.flatMap((server) => {
    const host = URL.parse(node[server] ?? '')?.hostname.replace(/^\[(.*)\]$/, '$1') ?? ''
    const message = isIP(host) === 0 ? undefined : objectToAddress(host, allowPrivate)
    return message === undefined ? [] : [{ server, message, isOnlyPrivate: message.endsWith(SET_ALLOW_PRIVATE) }]
  })
}
