import type { GrpcCall, MessageLimits } from './call.ts'
import { GrpcCode, type GrpcStatus } from './status.ts'

export type UnaryResponse =
  | { readonly ok: true; readonly message: Uint8Array }
  | { readonly ok: false; readonly status: GrpcStatus }

/** Serves a call of one request and one response. `respond` is called when the client has half-closed. */
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
    const response = respond(request)
    if (!response.ok) {
      call.end(response.status)
      return
    }
    call.send(response.message)
    call.end({ code: GrpcCode.ok })
  })
}
