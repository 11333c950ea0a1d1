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

/** The text of a node's own server. */
export const SHUTTING_DOWN: GrpcStatus = {
  code: GrpcCode.unavailable,
  message: 'server is shutting down try again later',
}

/** A limit of calls that need no token. */
export function limitStatus(what: string, limit: string): GrpcStatus {
  return { code: GrpcCode.resourceExhausted, message: `limit reached: ${what}; limit: ${limit}` }
}

/** A limit of the calls of one subscription, the same for every plan. */
export type CallLimit = {
  readonly limit: string
  readonly size: number
  /** What it counts. */
  readonly what: string
  readonly retryAfterMs: number
}

/** `cost` is that of the refused call in units. */
export function callLimitRefusal({ what, ...limit }: CallLimit, cost: number): Refusal {
  return { code: 'rate-limited', message: `limit reached: ${limit.size} ${what}`, data: { ...limit, cost } }
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
  const { reason, limit, cost, retryAfterMs, resetsAt, fix } = data
  if (typeof limit !== 'string') {
    const named = Object.entries({ reason, fix }).filter(([, text]) => typeof text === 'string')
    return named.map(([name, text]) => `${name}: ${String(text)}`)
  }
  const details = [`limit: ${limit}`, ...(typeof cost === 'number' ? [`cost: ${cost}`] : [])]
  if (typeof retryAfterMs !== 'number') return details
  const when = typeof resetsAt === 'string' ? ` (${resetsAt})` : ''
  return [...details, `try again in ${retryAfterMs} ms${when}`]
}
