import type { Clock } from '../core/clock.ts'
import { ServiceError } from '../core/error.ts'
import type { Random } from '../core/random.ts'
import { parseAddressPort, printAddressPort } from '../platform/net/ip-range.ts'
import { secureRandom } from '../platform/process/random.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import type { LocalChain } from './chain/chain.ts'
import { openChain } from './chain/open.ts'
import { secretOf } from './genesis/keys.ts'
import { startChainGeyserServer } from './geyser/grpc.ts'
import type { LocalnetOptions } from './options.ts'
import { startPubSubServer } from './pubsub/ws.ts'
import { startChainRpcServer } from './rpc/http.ts'
import { startShredSource } from './shreds/source.ts'
import { startTraffic } from './traffic/traffic.ts'
import { startVoting } from './voting/voting.ts'

export type LocalnetDeps = {
  readonly log: Logger
  readonly clock: Clock
  readonly random?: Random
  /** Opens the socket that shreds are sent from; required when a shred target is configured. */
  readonly openUdpSender?: (to: { readonly ip: string; readonly port: number }) => Promise<UdpSender>
}

export type UdpSender = AsyncDisposable & { send(packet: Uint8Array): void }

type Address = { readonly host: string; readonly port: number }

export type Localnet = AsyncDisposable & {
  readonly chain: LocalChain
  readonly rpc: Address
  readonly ws: Address
  readonly grpc: Address
  /** The listening addresses, for display. */
  readonly addresses: readonly { readonly name: string; readonly address: string }[]
  /** Lets open requests and streams finish until the deadline, then closes the servers; the chain runs until it is disposed. */
  drain(deadlineMs: number): Promise<void>
}

/** Starts the chain, its servers, the shred source, the validator's votes and the traffic generator; closes them in reverse. */
export async function startLocalnet(options: LocalnetOptions, deps: LocalnetDeps): Promise<Localnet> {
  const { log, clock, random = secureRandom } = deps
  await using opening = new AsyncDisposableStack()
  const { chain, keys } = opening.use(await openChain(options, { log, clock, random }))
  const ws = opening.use(await startPubSubServer({ listen: options.ws }, { chain, log, clock }))
  const pubsub = printAddressPort(ws.address.host, ws.address.port)
  const rpc = opening.use(await startChainRpcServer({ listen: options.rpc, pubsub }, { chain, log, clock }))
  const grpc = opening.use(await startChainGeyserServer({ listen: options.grpc }, { chain, log, clock }))

  if (options.shreds.to !== undefined) {
    const sender = opening.use(await openShredSocket(options.shreds.to, deps))
    opening.use(startShredSource({ chain, leader: keys.identity, clock, log, send: sender.send }))
  }
  if (options.votes.enabled) opening.use(startVoting({ chain, keys, log }))
  if (options.traffic.enabled) {
    const secret = secretOf(keys.identity)
    opening.use(startTraffic({ tps: options.traffic.tps }, { chain, clock, random, log, secret }))
  }

  const servers = { rpc, ws, grpc }
  const opened = opening.move()
  return {
    chain,
    rpc: rpc.address,
    ws: ws.address,
    grpc: grpc.address,
    addresses: Object.entries(servers).map(([name, { address }]) => ({
      name: `localnet ${name}`,
      address: printAddressPort(address.host, address.port),
    })),
    async drain(deadlineMs) {
      await Promise.all(Object.values(servers).map((server) => server.drain(deadlineMs)))
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

async function openShredSocket(to: string, { openUdpSender }: LocalnetDeps): Promise<UdpSender> {
  const target = parseAddressPort(to)
  if (!target || !openUdpSender) throw new ServiceError('invalid-value', `shreds cannot be sent to ${to}: give IP:PORT`)
  return openUdpSender(target)
}
