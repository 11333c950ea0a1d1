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
export function endpointsOf(config: Config, inUse: { rpc?: number; ws?: number; grpc?: number } = {}): Endpoints {
  const { rpc, ws, grpc } = config.bundle
  return {
    rpc: `${isSecure(rpc) ? 'https' : 'http'}://${placeOf(config, rpc, inUse.rpc)}`,
    ws: `${isSecure(ws) ? 'wss' : 'ws'}://${placeOf(config, ws, inUse.ws)}`,
    grpc: placeOf(config, grpc, inUse.grpc),
  }
}

type Door = Config['bundle']['rpc']

function isSecure({ tls, plaintext }: Door): boolean {
  return tls !== undefined || plaintext === 'behind-proxy'
}

/** A door on loopback is reached there; a public one by the host name of the config. */
function placeOf(config: Config, door: Door, inUse: number | undefined): string {
  const { host, port } = listenAddress(door)
  return `${isLoopbackHost(host) ? host : config.host}:${inUse ?? port}`
}
