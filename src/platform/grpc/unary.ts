import type { GrpcCall, MessageLimits } from './call.ts'
import { GrpcCode, type GrpcStatus } from './status.ts'

export type UnaryResponse =
  | { readonly ok: true; readonly message: Uint8Array }
  | { readonly ok: false; readonly status: GrpcStatus }

/** Serves a call of one request and one answer. The answer is worked out when the request is complete. */
export function serveUnary(
  call: GrpcCall,
  respond: (request: Uint8Array) => UnaryResponse,
  limits?: MessageLimits,
): void {
  let request: Uint8Array | undefined
  call.onMessage((message) => {
    if (request) call.end({ code: GrpcCode.internal, message: 'more than one request for a unary call' })
    request = message
  }, limits)
  call.onHalfClose(() => {
    if (!request) {
      call.end({ code: GrpcCode.internal, message: 'no request for a unary call' })
      return
    }
    const responded = respond(request)
    if (!responded.ok) {
      call.end(responded.status)
      return
    }
    call.send(responded.message)
    call.end({ code: GrpcCode.ok })
  })
}
