import type { Localnet } from '../../../localnet/service.ts'
import { addressKind, printAddressPort } from '../../../platform/net/ip-range.ts'
import { openUdpSender } from '../../../platform/udp/sender.ts'
import type { NodeOptions } from '../../../upstreams/options.ts'
import type { Config } from '../config/config.ts'
import type { ProcessContext } from '../process/open-process.ts'

type Address = { readonly host: string; readonly port: number }

/** By default the chain runs when no upstream node is configured. */
export function isChainEmbedded({ localnet, upstreams }: Config): boolean {
  return localnet.enabled ?? upstreams.nodes.length === 0
}

/** The embedded chain on free loopback ports. It sends its shreds to the port where the shred service receives. */
export async function openEmbeddedChain(
  config: Config,
  { log, clock, state }: ProcessContext<never>,
  shredReceiver?: Address,
): Promise<Localnet> {
  // A process with nodes of its own never loads the chain, a tenth of all files.
  const { startLocalnet } = await import('../../../localnet/service.ts')
  const { EMBEDDED_LEDGER_BYTES } = await import('../../../localnet/options.ts')
  const { enabled: _enabled, ...options } = config.localnet
  const limits = { ...options.limits, ledgerBytesMax: options.limits.ledgerBytesMax ?? EMBEDDED_LEDGER_BYTES }
  const anyPort = { host: '127.0.0.1', port: 0 }
  const shreds =
    shredReceiver === undefined ? {} : { to: printAddressPort(reachable(shredReceiver.host), shredReceiver.port) }
  return startLocalnet(
    { ...options, limits, stateDir: await state.folder('localnet'), rpc: anyPort, ws: anyPort, grpc: anyPort, shreds },
    { log: log.child({ part: 'localnet' }), clock, openUdpSender },
  )
}

/** A listener on the unspecified address is reached on loopback. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return addressKind(host) === 'unspecified' ? '::1' : host
}

/** The listeners of the chain, as `sluice status` names them. */
export function chainAddresses(chain: Localnet | undefined): Record<string, Address> {
  return chain === undefined ? {} : { 'localnet rpc': chain.rpc, 'localnet ws': chain.ws, 'localnet grpc': chain.grpc }
}

/** The configured nodes; without any, the embedded chain is the only node. */
export function nodesOf({ upstreams }: Config, chain: Localnet | undefined): NodeOptions[] {
  if (upstreams.nodes.length > 0 || chain === undefined) return upstreams.nodes
  const { rpc, ws, grpc } = chain
  return [
    {
      name: 'localnet',
      rpc: `http://${rpc.host}:${rpc.port}`,
      ws: `ws://${ws.host}:${ws.port}`,
      grpc: `http://${grpc.host}:${grpc.port}`,
      credentialHeader: 'x-token',
      allowPrivate: true,
      weight: 1,
    },
  ]
}
