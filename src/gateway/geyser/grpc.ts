import { CREDENTIAL_SOURCES, collectToken } from '../../access/credentials.ts'
import { explainRefusal } from '../../access/explain-refusal.ts'
import type { ProductKey } from '../../contract/products.ts'
import { createKeyedBuckets } from '../../core/keyed-buckets.ts'
import type { Random } from '../../core/random.ts'
import type { GrpcCall } from '../../platform/grpc/call.ts'
import { startGrpcServer } from '../../platform/grpc/server.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import type { AuthTarpit, Peer } from '../../platform/net/auth-tarpit.ts'
import { peerKey } from '../../platform/net/connection-caps.ts'
import type { ListenerOptions } from '../../platform/net/listener.ts'
import type { ListenerMetrics } from '../../platform/net/listener-metrics.ts'
import type { RefusalRecorder } from '../../platform/telemetry/refusal-log.ts'
import { OPEN_LIMIT } from '../address-rate-limit.ts'
import { tokenRefusal } from '../refusal.ts'
import { createGeyserCalls, type GeyserCallsDeps, type GeyserCallsOptions } from './calls.ts'
import { createGrpcHealth, type GrpcHealthOptions } from './health.ts'
import { isDecodedMethod } from './methods.ts'
import { createReflection, type ReflectedService } from './reflection.ts'
import { grpcStatusOf, limitStatus } from './refusal.ts'

export type GrpcServerOptions = Partial<GeyserCallsOptions & GrpcHealthOptions> & {
  readonly listen: ListenerOptions
  /** How often open streams are checked again, besides at every change of the store. */
  readonly sweepMs?: number
  /** `entries`: the listener serves SubscribeEntries, and no other method of a product. */
  readonly serves?: 'all' | 'entries'
}

export type GrpcServerDeps = GeyserCallsDeps &
  ListenerMetrics & {
    readonly tarpit: AuthTarpit
    readonly random?: Random
    readonly refusals?: RefusalRecorder | undefined
  }

export type GrpcServer = AsyncDisposable & {
  readonly address: { readonly host: string; readonly port: number }
  readonly openCalls: number
  /** Reports NOT_SERVING to health checks, and keeps serving. */
  beginLameDuck(): void
  /** Accepts no more calls, ends open streams with UNAVAILABLE one after another, and waits for the rest until the deadline. */
  drain(deadlineMs: number): Promise<void>
}

const DEFAULTS = {
  refusalDelayMs: 1000,
  unaryDeadlineMs: 10_000,
  stallMs: 30_000,
  sweepMs: 2000,
  healthPerSecond: 50,
  serves: 'all' as const,
}
/** The header limit of RPC: an 8 KB value is refused as an invalid token, as on the other servers. */
const METADATA_BYTES_MAX = 16 * 1024
/** Streams are ended over this time at a shutdown: clients that all come back at once would overload the next process (fault F11). */
const SPREAD_MS = 5000
const GEYSER_PATH = /^\/geyser\.Geyser\/(\w{1,64})$/
const ENTRIES_PATH = '/shredstream.ShredstreamProxy/SubscribeEntries'
const SERVICE_NAMES = { geyser: 'geyser.Geyser', shredstream: 'shredstream.ShredstreamProxy' } as const
/** On every server. */
const COMMON_SERVICES = [
  'grpc.health.v1.Health',
  'grpc.reflection.v1.ServerReflection',
  'grpc.reflection.v1alpha.ServerReflection',
]
const NOT_SERVED = {
  all: 'this method is not served here',
  entries: 'only shredstream.ShredstreamProxy/SubscribeEntries is served here',
} as const
/** For customers, and behind the semicolon for their operator. */
const NO_ENTRIES =
  'SubscribeEntries is not served here: this process decodes no shreds. Use the address of one that does; sluice serve decodes them where products.shreds-decoded.status is preview'

/** The gRPC server: geyser.Geyser and reflection with a token, and the health check without. */
export async function startGeyserServer(settings: GrpcServerOptions, deps: GrpcServerDeps): Promise<GrpcServer> {
  const options = { ...DEFAULTS, ...settings }
  const { access, clock, tarpit, metrics, limits } = deps
  const log = deps.log.child({ server: 'grpc' })
  await using opening = new AsyncDisposableStack()
  const geyser = opening.use(createGeyserCalls(options, { ...deps, log }))
  const services = servicesOf(options.serves, deps.decoded !== undefined)
  const health = createGrpcHealth(
    { ...options, services: [...COMMON_SERVICES, ...services.map((service) => SERVICE_NAMES[service])] },
    { clock, meter: metrics.grpc, table: limits?.buckets.grpcHealth, watches: limits?.held.watches },
  )
  const unknown = createKeyedBuckets(OPEN_LIMIT, () => clock.monotonicMs(), limits?.buckets.open)
  const reflection = opening.use(
    createReflection(
      { refusalDelayMs: options.refusalDelayMs, services },
      { access, clock, meter: metrics.grpc, calls: limits?.held.reflections },
    ),
  )

  /** The method of a product that is served here. */
  function methodOf(path: string): string | undefined {
    if (path === ENTRIES_PATH) return deps.decoded === undefined ? undefined : 'SubscribeEntries'
    return options.serves === 'all' ? GEYSER_PATH.exec(path)?.[1] : undefined
  }

  /** Reflection is part of both products, so that either is enough for it. */
  function authenticate(call: GrpcCall, method: string | undefined) {
    const token = collectToken(CREDENTIAL_SOURCES.grpc, call.rawMetadata)
    const isDecoding = deps.decoded !== undefined
    const product: ProductKey =
      isDecoding && method !== undefined && isDecodedMethod(method) ? 'shreds-decoded' : 'bundle'
    const caller = access.authenticate(token, product, clock.nowMs())
    if (caller.ok || method !== undefined || !isDecoding) return { caller, product }
    const other = access.authenticate(token, 'shreds-decoded', clock.nowMs())
    return other.ok ? { caller: other, product: 'shreds-decoded' as const } : { caller, product }
  }

  function onCall(call: GrpcCall): void {
    const peer = { remoteAddress: call.remoteAddress, headers: call.rawMetadata }
    if (health.serve(call, () => tarpit.addressOf(peer))) return
    const isReflection = reflection.isServed(call.path)
    const method = methodOf(call.path)
    // The path is not echoed: a token written into it must not reach a log.
    if (method === undefined && !isReflection) return refuseUnknown(call, peer)
    let subscription: string | undefined
    call.onStatus((status) => recordEnd(call.requestId, status, subscription))
    const { caller, product } = authenticate(call, method)
    if (caller.ok) {
      subscription = caller.subscription.id
      if (method === undefined) return reflection.serve(call, caller, product)
      return geyser.serve(call, caller, { method, remoteAddress: tarpit.addressOf(peer) })
    }
    const status = grpcStatusOf(tokenRefusal(explainRefusal('grpc', caller, { headers: call.rawMetadata })))
    call.discardMessages()
    tarpit.refuse(peer, metrics.grpc.delayedRefusals, (closes) => {
      call.end(status)
      if (closes) call.closeConnection()
    })
  }

  /** Whether the address may make one more call that needs no token. */
  function isWithinOpenLimit(peer: Peer): boolean {
    if (unknown.take(peerKey(tarpit.addressOf(peer))).ok) return true
    metrics.grpc.refused(OPEN_LIMIT.limit)
    return false
  }

  /** Needs no token, so every address has a rate limit. Beyond it the connection ends, once its open calls have. */
  function refuseUnknown(call: GrpcCall, peer: Peer): void {
    if (isWithinOpenLimit(peer))
      return call.end({
        code: GrpcCode.unimplemented,
        message: call.path === ENTRIES_PATH ? NO_ENTRIES : NOT_SERVED[options.serves],
      })
    const { limit, noun, perSecond } = OPEN_LIMIT
    call.end(limitStatus(`${perSecond} ${noun} per second of one address`, limit))
    call.closeConnection()
  }

  /** A call that ends with an error, here or at the node; the client finds its id in the trailers. */
  function recordEnd(requestId: string, status: GrpcStatus, subscription: string | undefined): void {
    if (status.code === GrpcCode.ok || status.code === GrpcCode.cancelled) return
    deps.refusals?.record({ requestId, interface: 'grpc', subscription, status: status.code, message: status.message })
  }

  const { onRefused, onNotAfter } = deps
  const server = opening.use(
    await startGrpcServer(
      { listen: options.listen, metadataBytesMax: METADATA_BYTES_MAX },
      {
        log,
        clock,
        onCall,
        mayRefuse: isWithinOpenLimit,
        onRefused,
        onNotAfter,
        ...(deps.random === undefined ? {} : { random: deps.random }),
      },
    ),
  )
  const sweep = () => {
    geyser.sweep()
    reflection.sweep()
  }
  opening.use(access.onChange(sweep))
  const sweeping = opening.use(clock.setRepeating(options.sweepMs, sweep))
  sweeping.unref?.()
  const opened = opening.move()

  return {
    address: server.address,
    get openCalls() {
      return geyser.openCalls
    },
    beginLameDuck: () => health.stopServing(),
    async drain(deadlineMs) {
      health.stopServing()
      geyser.endStreams(Math.min(SPREAD_MS, deadlineMs / 2))
      await server.drain(deadlineMs)
      await opened.disposeAsync()
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

function servicesOf(serves: 'all' | 'entries', isDecoding: boolean): ReflectedService[] {
  return [...(serves === 'all' ? (['geyser'] as const) : []), ...(isDecoding ? (['shredstream'] as const) : [])]
}
