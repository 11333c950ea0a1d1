import type { GrpcCall } from '../host/grpc-call.ts'
import { GrpcCode } from '../host/grpc-status.ts'
import { serveUnary } from '../host/grpc-unary.ts'
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../solana/gen/health_pb.ts'
import { decodeMessage, encodeMessage } from '../solana/protobuf.ts'

/** grpc.health.v1, free of token. */
export type GrpcHealth = {
  /** False where the call is for another service. */
  serve(call: GrpcCall): boolean
  /** Tells who watches, and who asks from now on, that it is time to go elsewhere. */
  stopServing(): void
}

const CHECK = '/grpc.health.v1.Health/Check'
const WATCH = '/grpc.health.v1.Health/Watch'
/** The server as a whole has the empty name. */
const SERVICES: ReadonlySet<string> = new Set(['', 'geyser.Geyser', 'grpc.health.v1.Health'])
/** Nobody needs a token to watch, so there is room for few. */
const WATCHERS_MAX = 256

export function createGrpcHealth(): GrpcHealth {
  const watchers = new Set<GrpcCall>()
  /** With those who ask for a service that is not here. */
  let open = 0
  let isServing = true

  const statusNow = () => (isServing ? ServingStatus.SERVING : ServingStatus.NOT_SERVING)
  const message = (status: ServingStatus) => encodeMessage(HealthCheckResponseSchema, { status })
  const undecodable = { code: GrpcCode.internal, message: 'cannot decode the request' }

  function check(call: GrpcCall): void {
    serveUnary(call, (bytes) => {
      const request = decodeMessage(HealthCheckRequestSchema, bytes)
      if (request === undefined) return { ok: false, status: undecodable }
      if (SERVICES.has(request.service)) return { ok: true, message: message(statusNow()) }
      return { ok: false, status: { code: GrpcCode.notFound, message: 'unknown service' } }
    })
  }

  /** The status now, and each change of it; a service that is not known is told as such, since it might come (health.proto). */
  function watch(call: GrpcCall): void {
    if (open >= WATCHERS_MAX) {
      const says = `limit reached: ${WATCHERS_MAX} watchers of the health`
      return call.end({ code: GrpcCode.resourceExhausted, message: says })
    }
    open += 1
    call.onClose(() => {
      open -= 1
      watchers.delete(call)
    })
    let isAsked = false
    call.onMessage((bytes) => {
      const request = isAsked ? undefined : decodeMessage(HealthCheckRequestSchema, bytes)
      isAsked = true
      if (request === undefined) return call.end(undecodable)
      if (!SERVICES.has(request.service)) return void call.send(message(ServingStatus.SERVICE_UNKNOWN))
      watchers.add(call)
      call.send(message(statusNow()))
    })
    call.onHalfClose(() => {
      if (!isAsked) call.end({ code: GrpcCode.internal, message: 'no request' })
    })
    call.onShutdown(() => call.end({ code: GrpcCode.unavailable, message: 'server is shutting down try again later' }))
  }

  return {
    serve(call) {
      if (call.path === CHECK) check(call)
      else if (call.path === WATCH) watch(call)
      else return false
      return true
    },
    stopServing() {
      if (!isServing) return
      isServing = false
      for (const call of watchers) call.send(message(statusNow()))
    },
  }
}
