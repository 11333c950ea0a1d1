import { listenAddress } from '../../../contract/listener-option.ts'
import { isLoopbackHost } from '../../../platform/net/listener.ts'
import type { Config } from '../config/config.ts'

/** URLs of the services for customers. */
export type Endpoints = {
  readonly rpc?: string | undefined
  readonly ws?: string | undefined
  readonly grpc?: string | undefined
  readonly indexer?: string | undefined
  readonly sender?: string | undefined
  /** Tip accounts of the sender, if known. */
  readonly tipAccounts?: readonly string[] | undefined
  readonly execution?: string | undefined
}

/** From the config, and from the ports in use: with port 0 the system picks one. */
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
    rpc: `${isSecure(rpc) ? 'https' : 'http'}://${hostAndPort(config, rpc, inUse.rpc)}`,
    ws: `${isSecure(ws) ? 'wss' : 'ws'}://${hostAndPort(config, ws, inUse.ws)}`,
    grpc: `${isSecure(grpc) ? 'https' : 'http'}://${hostAndPort(config, grpc, inUse.grpc)}`,
    indexer: config.indexer.enabled
      ? `${isSecure(config.indexer) ? 'https' : 'http'}://${hostAndPort(config, config.indexer, inUse.indexer)}`
      : undefined,
    sender: config.sender.enabled
      ? `${isSecure(config.sender) ? 'https' : 'http'}://${hostAndPort(config, config.sender, inUse.sender)}`
      : undefined,
    tipAccounts: inUse.tipAccounts ?? config.sender.tipAccounts,
    execution: config.execution.enabled
      ? `${isSecure(config.execution) ? 'https' : 'http'}://${hostAndPort(config, config.execution, inUse.execution)}`
      : undefined,
  }
}

type Server = Config['bundle']['rpc']

function isSecure({ tls, plaintext }: Server): boolean {
  return tls !== undefined || plaintext === 'behind-proxy'
}

/** The loopback address of a loopback listener without a proxy in front; otherwise the host name of the config. */
function hostAndPort(config: Config, server: Server, inUse: number | undefined): string {
  const { host, port } = listenAddress(server)
  return `${isLoopbackHost(host) && server.plaintext === undefined ? host : config.host}:${inUse ?? port}`
}
