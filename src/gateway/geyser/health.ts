import type { Clock } from '../../core/clock.ts'
import { createHeldMemory, HeldAmounts } from '../../core/held-amounts.ts'
import { createKeyedBuckets } from '../../core/keyed-buckets.ts'
import type { SharedTable } from '../../core/shared-table.ts'
import type { GrpcCall, MessageLimits } from '../../platform/grpc/call.ts'
import { GrpcCode } from '../../platform/grpc/status.ts'
import { serveUnary } from '../../platform/grpc/unary.ts'
import { peerKey } from '../../platform/net/connection-caps.ts'
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../solana/gen/health_pb.ts'
import { decodeMessage, encodeMessage } from '../../solana/geyser/protobuf.ts'
import type { ListenerMeter } from '../metrics.ts'
import { endLater, limitStatus, SHUTTING_DOWN } from './refusal.ts'

/** grpc.health.v1, without a token, so every address has a rate limit. */
export type GrpcHealth = {
  /** False where the call is for another service. `remoteAddress` is the client's, past the proxies in between. */
  serve(call: GrpcCall, remoteAddress: () => string): boolean
  /** Reports NOT_SERVING to watchers and to later checks. */
  stopServing(): void
}

export type GrpcHealthOptions = {
  /** Calls of one address in a second, on average; ten seconds can be saved up. */
  readonly healthPerSecond: number
  /** A refusal is sent after this time, so that a client that retries at once does not spin. */
  readonly refusalDelayMs: number
  /** The names of the services of this server. */
  readonly services: readonly string[]
}

export type GrpcHealthDeps = {
  readonly clock: Clock
  readonly meter: Pick<ListenerMeter, 'refused'>
  /** The buckets and the open watches of all threads; without them they are of this thread alone. */
  readonly table?: SharedTable | undefined
  readonly watches?: HeldAmounts | undefined
}

const CHECK = '/grpc.health.v1.Health/Check'
const WATCH = '/grpc.health.v1.Health/Watch'
const BURST_SECONDS = 10
/** Open watches, in all and of one address. A watch has no end, so that an address with few takes the place of one with many. */
const WATCHES_MAX = { total: 256, key: 32 }
/** The name of a service, as it arrives and inflated. */
const REQUEST_BYTES_MAX = 512
/** A call whose request is not complete by then is ended. */
const REQUEST_WITHIN_MS = 10_000

export function createGrpcHealth(options: GrpcHealthOptions, deps: GrpcHealthDeps): GrpcHealth {
  const { healthPerSecond, refusalDelayMs } = options
  const { clock, meter, table } = deps
  // The server as a whole has the empty name.
  const services: ReadonlySet<string> = new Set(['', ...options.services])
  /** By address, also of services that are not here. */
  const watches = deps.watches ?? new HeldAmounts(createHeldMemory({ threads: 1 }), 0)
  const rate = { perSecond: healthPerSecond, burst: healthPerSecond * BURST_SECONDS }
  const buckets = createKeyedBuckets(rate, () => clock.monotonicMs(), table)
  const watchers = new Set<GrpcCall>()
  /** Those of this thread, the oldest first. */
  const openWatches = new Set<OpenWatch>()
  let isServing = true

  const statusNow = () => (isServing ? ServingStatus.SERVING : ServingStatus.NOT_SERVING)
  const message = (status: ServingStatus) => encodeMessage(HealthCheckResponseSchema, { status })
  const limits: MessageLimits = {
    bytesMax: () => REQUEST_BYTES_MAX,
    onRefused: ({ limit }) => meter.refused(limit ?? 'readable'),
  }

  function refuse(call: GrpcCall, limit: 'healthPerSecond' | 'healthWatches', what: string): void {
    meter.refused(limit)
    endLater(call, clock, { delayMs: refusalDelayMs }, () => call.end(limitStatus(what, limit)))
  }

  /** Ends the call unless its request arrives in time. Returns what to call when it has. */
  function expectRequest(call: GrpcCall): () => void {
    const timer = clock.setTimer(REQUEST_WITHIN_MS, () =>
      call.end({ code: GrpcCode.deadlineExceeded, message: `no request within ${REQUEST_WITHIN_MS} ms` }),
    )
    timer.unref?.()
    call.onClose(() => timer.cancel())
    return () => timer.cancel()
  }

  function check(call: GrpcCall): void {
    expectRequest(call)
    const respond = (bytes: Uint8Array) => {
      const request = decodeMessage(HealthCheckRequestSchema, bytes)
      if (request === undefined) return { ok: false, status: UNDECODABLE } as const
      if (services.has(request.service)) return { ok: true, message: message(statusNow()) } as const
      return { ok: false, status: { code: GrpcCode.notFound, message: 'unknown service' } } as const
    }
    serveUnary(call, respond, limits)
  }

  /** The status now, and each change of it; a service that is not known is reported as such, since it might come (health.proto). */
  function watch(call: GrpcCall, address: string): void {
    let excess = watches.take(address, 1, WATCHES_MAX)
    if (excess === 'total' && endOneOfMost(address)) excess = watches.take(address, 1, WATCHES_MAX)
    if (excess !== undefined) {
      const whose = excess === 'key' ? ' of one address' : ''
      return refuse(call, 'healthWatches', `${WATCHES_MAX[excess]} health watches${whose}`)
    }
    const open: OpenWatch = { call, address }
    openWatches.add(open)
    call.onClose(() => close(open))
    const arrived = expectRequest(call)
    let hasRequest = false
    call.onMessage((bytes) => {
      const request = hasRequest ? undefined : decodeMessage(HealthCheckRequestSchema, bytes)
      hasRequest = true
      if (request === undefined) return call.end(UNDECODABLE)
      arrived()
      if (!services.has(request.service)) return void call.send(message(ServingStatus.SERVICE_UNKNOWN))
      watchers.add(call)
      call.send(message(statusNow()))
    }, limits)
    call.onHalfClose(() => {
      if (!hasRequest) call.end({ code: GrpcCode.internal, message: 'no request' })
    })
    call.onShutdown(() => call.end(SHUTTING_DOWN))
  }

  function close(open: OpenWatch): void {
    if (!openWatches.delete(open)) return
    watches.release(open.address, 1)
    watchers.delete(open.call)
  }

  /** Ends the oldest watch of the address with the most. False where no address has two more than `address`. */
  function endOneOfMost(address: string): boolean {
    let found: OpenWatch | undefined
    let most = watches.of(address) + 1
    for (const open of openWatches) {
      const held = watches.of(open.address)
      if (held > most) [found, most] = [open, held]
    }
    if (found === undefined) return false
    meter.refused('healthWatches')
    close(found)
    found.call.end(MADE_ROOM)
    return true
  }

  return {
    serve(call, remoteAddress) {
      if (call.path !== CHECK && call.path !== WATCH) return false
      const address = peerKey(remoteAddress())
      if (!buckets.take(address).ok) {
        refuse(call, 'healthPerSecond', `${healthPerSecond} health calls per second of one address`)
      } else if (call.path === CHECK) check(call)
      else watch(call, address)
      return true
    },
    stopServing() {
      if (!isServing) return
      isServing = false
      for (const call of watchers) call.send(message(statusNow()))
    },
  }
}

type OpenWatch = { readonly call: GrpcCall; readonly address: string }

const MADE_ROOM = {
  code: GrpcCode.unavailable,
  message: 'all health watches were in use, and this address had the most; watch again, or use Check',
}
const UNDECODABLE = { code: GrpcCode.internal, message: 'cannot decode the request' }
