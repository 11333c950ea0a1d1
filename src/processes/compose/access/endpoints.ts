import { listenAddress } from '../../../contract/listen-address.ts'
import { isLoopbackName, type PublicProtocol, printPublicUrl } from '../../../contract/public-url.ts'
import { printAddressPort } from '../../../platform/net/ip-range.ts'
import { isLoopbackHost } from '../../../platform/net/listener.ts'
import type { Config } from '../config/config.ts'
import { executionSource, servesExecution } from '../config/served.ts'

/** The services for customers that have a URL. */
export const ENDPOINT_NAMES = ['rpc', 'ws', 'grpc', 'entries', 'indexer', 'sender', 'execution'] as const
export type EndpointName = (typeof ENDPOINT_NAMES)[number]

/** URLs of the services for customers. A disabled service without a configured address has none and is not missing. */
export type Endpoints = { readonly [name in EndpointName]?: string | undefined } & {
  /** Enabled services whose address is not known, with the key that sets it. */
  readonly missing: readonly MissingEndpoint[]
  /** Tip accounts of the sender, if known. */
  readonly tipAccounts?: readonly string[] | undefined
  /** The customer's own page, where it is served. */
  readonly accountPage?: string | undefined
  /** RPC, WebSocket, gRPC and SQL are those of the embedded chain. */
  readonly isChainSimulated?: boolean
  /** The execution service serves simulated data. */
  readonly isExecutionSimulated?: boolean
}

export type MissingEndpoint = {
  readonly name: EndpointName
  /** The key of the config that gives it an address. */
  readonly key: string
  readonly reason: string
  /** Its address is known as soon as it listens. */
  readonly isConfigured: boolean
}

/** Ports in use: with port 0 the system picks one. */
export type PortsInUse = { readonly [name in EndpointName]?: number | undefined } & {
  readonly tipAccounts?: readonly string[] | undefined
}

/** From the config, and from the ports in use. Nothing is taken from requests. */
export function endpointsOf(config: Config, inUse: PortsInUse = {}): Endpoints {
  const missing: MissingEndpoint[] = []
  const urls: { [name in EndpointName]?: string } = {}
  for (const { name, key, protocol, server } of serversOf(config)) {
    const url = publicUrlOf(server, protocol, { host: config.host, port: inUse[name] })
    if (url === undefined) missing.push(missingOf(server, name, `${key}.publicUrl`))
    else urls[name] = url
  }
  return {
    ...urls,
    missing,
    accountPage: config.bundle.accountPage && urls.rpc !== undefined ? `${urls.rpc}/account` : undefined,
    tipAccounts: inUse.tipAccounts ?? config.sender.tipAccounts,
    isChainSimulated: config.upstreams.nodes.length === 0 && config.localnet.enabled !== false,
    isExecutionSimulated: executionSource(config) === 'simulated',
  }
}

type Server = Config['bundle']['rpc']
type EndpointServer = {
  readonly name: EndpointName
  /** Section of the config. */
  readonly key: string
  readonly protocol: PublicProtocol
  readonly server: Server
}

function serversOf(config: Config): EndpointServer[] {
  const { bundle, indexer, sender, execution } = config
  const all: (EndpointServer & { readonly isEnabled: boolean })[] = [
    { name: 'rpc', key: 'bundle.rpc', protocol: 'http', server: bundle.rpc, isEnabled: true },
    { name: 'ws', key: 'bundle.ws', protocol: 'ws', server: bundle.ws, isEnabled: true },
    { name: 'grpc', key: 'bundle.grpc', protocol: 'grpc', server: bundle.grpc, isEnabled: true },
    {
      name: 'entries',
      key: 'bundle.entries',
      protocol: 'grpc',
      server: bundle.entries,
      isEnabled: bundle.entries.enabled,
    },
    {
      name: 'indexer',
      key: 'indexer',
      protocol: 'http',
      server: indexer,
      isEnabled: indexer.enabled || runsElsewhere(indexer),
    },
    {
      name: 'sender',
      key: 'sender',
      protocol: 'http',
      server: sender,
      isEnabled: sender.enabled || runsElsewhere(sender),
    },
    {
      name: 'execution',
      key: 'execution',
      protocol: 'http',
      server: execution,
      isEnabled: servesExecution(config) || runsElsewhere(execution),
    },
  ]
  return all.filter(({ isEnabled }) => isEnabled)
}

/** `enabled` is about `serve` only: a disabled service with an address for customers runs in a process of its own. */
function runsElsewhere({ enabled, publicUrl }: Server & { readonly enabled: boolean }): boolean {
  return !enabled && publicUrl !== undefined
}

/**
 * The configured address. Else that of a loopback listener without a proxy in front, which is true as it is. Else the older key `host` with the port of
 * the listener; a loopback name there is the address of nothing that customers reach.
 */
function publicUrlOf(
  server: Server,
  protocol: PublicProtocol,
  { host, port: portInUse }: { readonly host: string | undefined; readonly port: number | undefined },
): string | undefined {
  if (server.publicUrl !== undefined) return printPublicUrl(server.publicUrl)
  const listen = listenAddress(server)
  const port = portInUse ?? listen.port
  if (port === 0) return undefined
  if (isLocalServer(server))
    return `${schemeOf(protocol, server.tls !== undefined)}://${printAddressPort(listen.host, port)}`
  return host === undefined || isLoopbackName(host) ? undefined : `${schemeOf(protocol, true)}://${host}:${port}`
}

function schemeOf(protocol: PublicProtocol, isSecure: boolean): string {
  return `${protocol === 'ws' ? 'ws' : 'http'}${isSecure ? 's' : ''}`
}

function missingOf(server: Server, name: EndpointName, key: string): MissingEndpoint {
  const isConfigured = isLocalServer(server)
  const reason = isConfigured
    ? 'port 0 is chosen at start: run sluice serve first'
    : `no publicUrl configured: set ${key}`
  return { name, key, reason, isConfigured }
}

/** Its address is true as it is. */
function isLocalServer(server: Server): boolean {
  return isLoopbackHost(listenAddress(server).host) && server.plaintext === undefined
}
