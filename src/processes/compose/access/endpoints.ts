import { listenAddress } from '../../../contract/listener-option.ts'
import { isLoopbackHost } from '../../../platform/net/listener.ts'
import type { Config } from '../config/config.ts'

/** Where customers reach the doors that are open in this build. */
export type Endpoints = {
  readonly rpc?: string | undefined
  readonly ws?: string | undefined
  readonly grpc?: string | undefined
  readonly indexer?: string | undefined
  readonly sender?: string | undefined
  /** Where tips of the sender go, as far as they are known. */
  readonly tipAccounts?: readonly string[] | undefined
  readonly execution?: string | undefined
}

/** From the config, and from the ports in use where the process knows them: a port 0 is chosen by the system. */
export function endpointsOf(
  config: Config,
  inUse: {
    rpc?: number
    ws?: number
    grpc?: number
    sender?: number | undefined
    tipAccounts?: readonly string[] | undefined
    execution?: number | undefined
    indexer?: number | undefined
  } = {},
): Endpoints {
  const { rpc, ws, grpc } = config.bundle
  return {
    rpc: `${isSecure(rpc) ? 'https' : 'http'}://${positionOf(config, rpc, inUse.rpc)}`,
    ws: `${isSecure(ws) ? 'wss' : 'ws'}://${positionOf(config, ws, inUse.ws)}`,
    grpc: `${isSecure(grpc) ? 'https' : 'http'}://${positionOf(config, grpc, inUse.grpc)}`,
    indexer: config.indexer.enabled
      ? `${isSecure(config.indexer) ? 'https' : 'http'}://${positionOf(config, config.indexer, inUse.indexer)}`
      : undefined,
    sender: config.sender.enabled
      ? `${isSecure(config.sender) ? 'https' : 'http'}://${positionOf(config, config.sender, inUse.sender)}`
      : undefined,
    tipAccounts: inUse.tipAccounts ?? config.sender.tipAccounts,
    execution: config.execution.enabled
      ? `${isSecure(config.execution) ? 'https' : 'http'}://${positionOf(config, config.execution, inUse.execution)}`
      : undefined,
  }
}

type Server = Config['bundle']['rpc']

function isSecure({ tls, plaintext }: Server): boolean {
  return tls !== undefined || plaintext === 'behind-proxy'
}

/** A door on loopback is reached there, unless a proxy stands in front of it; a public one by the host name of the config. */
function positionOf(config: Config, server: Server, inUse: number | undefined): string {
  const { host, port } = listenAddress(server)
  return `${isLoopbackHost(host) && server.plaintext === undefined ? host : config.host}:${inUse ?? port}`
}
