import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Clock } from '../core/clock.ts'
import { createKeyedBuckets } from '../core/keyed-buckets.ts'
import type { SharedTable } from '../core/shared-table.ts'
import { sendJson } from '../platform/http/server/reply.ts'
import { peerKey } from '../platform/net/connection-caps.ts'
import type { ListenerMeter } from './metrics.ts'

/** What one address may request of an endpoint that needs no token. */
export type AddressRateLimitOptions = {
  /** Its name in refusals and metrics. */
  readonly limit: string
  /** What is limited, in a sentence. */
  readonly noun: string
  readonly perSecond: number
  readonly burst: number
}

/** The limit of requests that no token is needed for: unknown paths, preflights, and on gRPC unknown methods and calls that are not gRPC. */
export const OPEN_LIMIT: AddressRateLimitOptions = {
  limit: 'openRequestsPerSecond',
  noun: 'requests without a token',
  perSecond: 100,
  burst: 1000,
}

export type LimitedRequest = {
  readonly response: ServerResponse
  /** The client's, behind any trusted proxies. */
  readonly remoteAddress: string
  readonly requestId: string
  readonly headers: OutgoingHttpHeaders
}

export type AddressRateLimit = {
  /** True where the request is within the limit; otherwise it has had its response. */
  admit(request: LimitedRequest): boolean
  /** Charges work that is already done. */
  charge(remoteAddress: string, cost: number): void
}

export type AddressRateLimitDeps = {
  readonly clock: Clock
  readonly meter: Pick<ListenerMeter, 'refused'>
  /** The buckets of all threads; without it they are of this thread alone. */
  readonly table?: SharedTable | undefined
}

export function createAddressRateLimit(
  { limit, noun, perSecond, burst }: AddressRateLimitOptions,
  { clock, meter, table }: AddressRateLimitDeps,
): AddressRateLimit {
  const buckets = createKeyedBuckets({ perSecond, burst }, () => clock.monotonicMs(), table)
  return {
    admit({ response, remoteAddress, requestId, headers }) {
      const taken = buckets.take(peerKey(remoteAddress))
      if (taken.ok) return true
      meter.refused(limit)
      const message = `limit reached: ${perSecond} ${noun} per second of one address`
      const body = { error: 'rate-limited', message, limit, size: perSecond, request_id: requestId }
      const retry = { 'retry-after': String(Math.max(1, Math.ceil(taken.retryAfterMs / 1000))) }
      sendJson(response, 429, body, { ...headers, ...retry })
      return false
    },
    charge: (remoteAddress, cost) => buckets.charge(peerKey(remoteAddress), cost),
  }
}
