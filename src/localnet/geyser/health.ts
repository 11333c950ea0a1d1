import type { GrpcCall } from '../../platform/grpc/call.ts'
import { GrpcCode } from '../../platform/grpc/status.ts'
import { serveUnary } from '../../platform/grpc/unary.ts'
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../solana/gen/health_pb.ts'
import { decodeMessage, encodeMessage } from '../../solana/geyser/protobuf.ts'

/** The empty name stands for the server. */
const SERVICES: ReadonlySet<string> = new Set(['', 'geyser.Geyser', 'grpc.health.v1.Health'])

/** grpc.health.v1: reports SERVING; on shutdown watchers receive NOT_SERVING. */
export function serveHealth(call: GrpcCall, method: string): boolean {
  if (method === 'Check') {
    serveUnary(call, (bytes) => {
      const request = decodeMessage(HealthCheckRequestSchema, bytes)
      if (!request) return { ok: false, status: { code: GrpcCode.internal, message: 'cannot decode the request' } }
      if (!SERVICES.has(request.service)) {
        return { ok: false, status: { code: GrpcCode.notFound, message: 'unknown service' } }
      }
      return { ok: true, message: statusMessage(ServingStatus.SERVING) }
    })
    return true
  }
  if (method === 'Watch') {
    watch(call)
    return true
  }
  return false
}

function watch(call: GrpcCall): void {
  let known = false
  call.onMessage((bytes) => {
    const request = decodeMessage(HealthCheckRequestSchema, bytes)
    known = request !== undefined && SERVICES.has(request.service)
    call.send(statusMessage(known ? ServingStatus.SERVING : ServingStatus.SERVICE_UNKNOWN))
  })
  call.onShutdown(() => {
    if (known) call.send(statusMessage(ServingStatus.NOT_SERVING))
    call.end({ code: GrpcCode.unavailable, message: 'server is shutting down try again later' })
  })
}

function statusMessage(status: ServingStatus): Uint8Array {
  return encodeMessage(HealthCheckResponseSchema, { status })
}
