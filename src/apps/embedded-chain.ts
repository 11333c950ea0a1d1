import { type Localnet, startLocalnet } from '../localnet/service.ts'
import type { NodeOptions } from '../upstreams/options.ts'
import type { Config } from './config.ts'
import type { Deps } from './deps.ts'

/** The chain that stands in where no upstream is configured: reached over loopback sockets like any other node. */
export function startEmbeddedChain(config: Config, stateDir: string, { log, clock }: Deps): Promise<Localnet> {
  const { enabled: _enabled, ...options } = config.localnet
  const anyPort = { host: '127.0.0.1', port: 0 }
  return startLocalnet(
    { ...options, stateDir, rpc: anyPort, ws: anyPort, grpc: anyPort, shreds: {} },
    { log: log.child({ part: 'localnet' }), clock },
  )
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
