import type { RemainingQuota } from '../../access/quota/charge.ts'
import { ERRORS } from '../../contract/errors.ts'
import type { Clock } from '../../core/clock.ts'
import type { GrpcCall } from '../../platform/grpc/call.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import type { Refusal } from '../refusal.ts'
import { rateLimitHeaders } from '../rpc/http-response.ts'

/** A refusal as the status of a call. The message has every detail, since most clients show nothing else. */
export function grpcStatusOf(refusal: Refusal, quota?: RemainingQuota): GrpcStatus {
  return {
    code: (ERRORS[refusal.code] as { grpc?: number }).grpc ?? GrpcCode.internal,
    message: [refusal.message, ...detailsOf(refusal)].join('; '),
    ...(quota === undefined ? {} : { metadata: rateLimitHeaders(quota, 0) }),
  }
}

/** Ends a call over a limit after a delay, because the common client reopens a refused stream at once. */
export function endLater(
  call: GrpcCall,
  clock: Clock,
  { delayMs }: { readonly delayMs: number },
  end: () => void,
): void {
  call.discardMessages()
  const timer = clock.setTimer(delayMs, end)
  call.onClose(() => timer.cancel())
  call.onShutdown(end)
}

function detailsOf({ data }: Refusal): string[] {
  const { reason, limit, retryAfterMs, resetsAt, fix } = data
  if (typeof limit !== 'string') {
    const named = Object.entries({ reason, fix }).filter(([, text]) => typeof text === 'string')
    return named.map(([name, text]) => `${name}: ${String(text)}`)
  }
  if (typeof retryAfterMs !== 'number') return [`limit: ${limit}`]
  const when = typeof resetsAt === 'string' ? ` (${resetsAt})` : ''
  return [`limit: ${limit}`, `try again in ${retryAfterMs} ms${when}`]
}
