import { listenAddress } from '../contract/listener-option.ts'
import { isLoopbackHost } from '../host/listener.ts'
import type { Config } from './config.ts'

/** Where customers reach the doors that are open in this build. */
export type Endpoints = {
  readonly rpc?: string | undefined
  readonly ws?: string | undefined
  readonly grpc?: string | undefined
  readonly indexer?: string | undefined
  readonly sender?: string | undefined
  readonly execution?: string | undefined
}

/** From the config, and from the ports in use where the process knows them: a port 0 is chosen by the system. */
export function endpointsOf(config: Config, inUse: { readonly rpc?: number } = {}): Endpoints {
  return { rpc: addressOf(config, config.bundle.rpc, { plain: 'http', secure: 'https', port: inUse.rpc }) }
}

/** A door on loopback is reached there; a public one by the host name of the config, with TLS by itself or by the proxy in front. */
function addressOf(
  config: Config,
  option: Config['bundle']['rpc'],
  door: { plain: string; secure: string; port: number | undefined },
): string {
  const { host, port } = listenAddress(option)
  const isLocal = isLoopbackHost(host)
  const isSecure = option.tls !== undefined || option.plaintext === 'behind-proxy'
  return `${isSecure ? door.secure : door.plain}://${isLocal ? host : config.host}:${door.port ?? port}`
}
