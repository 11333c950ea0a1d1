import { ERRORS } from '../../contract/errors.ts'
import { writeError } from '../../solana/json/json-rpc.ts'
import { PERMIT_RETRY_MS, type Refusal, STAYS_CHARGED } from '../refusal.ts'

/** The text is that of a node (Agave). */
export function invalidSubscription(id: string): string {
  return writeError(id, { code: ERRORS['invalid-params'].jsonRpc, message: 'Invalid subscription id.' })
}

/** Limits of one connection, the same for every plan. A call in flight ends by itself, a subscription when the client ends it. */
const ON_CONNECTION = {
  wsSubscriptions: { label: 'live subscriptions', retryAfterMs: PERMIT_RETRY_MS },
  callsInFlight: { label: 'calls in flight', retryAfterMs: 1000 },
} as const

/** `cost` is that of the refused call in units. */
export function connectionLimitRefusal(limit: keyof typeof ON_CONNECTION, size: number, cost: number): Refusal {
  const { label, retryAfterMs } = ON_CONNECTION[limit]
  return {
    code: 'rate-limited',
    message: `limit reached: ${size} ${label} on one connection`,
    data: { reason: 'connections', limit, size, per: 'connection', cost, retryAfterMs },
  }
}

/** The limit applies to all responses of a batch together. */
export function largeResponseRefusal(size: number, isBatch: boolean): Refusal {
  const what = isBatch ? 'the responses of the batch have' : 'the response has'
  return {
    code: 'response-too-large',
    message: `${what} more than ${size} bytes: request it over HTTP; ${STAYS_CHARGED}`,
    data: { limit: 'responseBytes', size, charged: true },
  }
}

/** The limit of what one subscription creates of the upstream subscriptions at shared nodes while they are scarce. */
export const UPSTREAM_SUBSCRIPTIONS = 'upstreamSubscriptionsPerSubscription'

export function upstreamSubscriptionRefusal(size: number, cost: number): Refusal {
  return {
    code: 'rate-limited',
    message: `limit reached: ${size} different WebSocket subscriptions of one subscription while those at the nodes are scarce`,
    data: { reason: 'connections', limit: UPSTREAM_SUBSCRIPTIONS, size, cost, retryAfterMs: PERMIT_RETRY_MS },
    retryAfterSeconds: PERMIT_RETRY_MS / 1000,
  }
}
