import { type Localnet, startLocalnet } from '../../../localnet/service.ts'
import { addressKind, printAddressPort } from '../../../platform/net/ip-range.ts'
import { openUdpSender } from '../../../platform/udp/sender.ts'
import type { NodeOptions } from '../../../upstreams/options.ts'
import type { Config } from '../config/config.ts'
import type { Deps } from '../process/deps.ts'

/**
 * The chain that stands in where no upstream is configured: reached over loopback sockets like any other node. Its shreds go to the port that the
 * operator's own receivers would send to.
 */
export function startEmbeddedChain(
  config: Config,
  stateDir: string,
  { log, clock }: Deps,
  shredPort?: { readonly host: string; readonly port: number },
): Promise<Localnet> {
  const { enabled: _enabled, ...options } = config.localnet
  const anyPort = { host: '127.0.0.1', port: 0 }
  const to = shredPort && printAddressPort(reachable(shredPort.host), shredPort.port)
  return startLocalnet(
    { ...options, stateDir, rpc: anyPort, ws: anyPort, grpc: anyPort, shreds: to === undefined ? {} : { to } },
    { log: log.child({ part: 'localnet' }), clock, openUdpSender },
  )
}

/** A port that listens on all addresses is reached on loopback. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return addressKind(host) === 'unspecified' ? '::1' : host
}

export function nodeOf({ rpc, ws, grpc }: Localnet): NodeOptions {
  return {
    name: 'localnet',
    rpc: `http://${rpc.host}:${rpc.port}`,
    ws: `ws://${ws.host}:${ws.port}`,
    grpc: `http://${grpc.host}:${grpc.port}`,
    credentialHeader: 'x-token',
    allowPrivate: true,
    weight: 1,
  }
}
