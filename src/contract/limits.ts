/**
 * Every limit a plan can set, by the name that a refusal uses. `null` means unlimited.
 * Quota belongs to the token: every machine, connection and interface that uses it shares one budget.
 */
export type Limits = {
  /** Token bucket over all three interfaces; it holds ten seconds' worth. */
  readonly unitsPerSecond: number | null
  /** A bucket of its own for `sendTransaction`, on top of the units. */
  readonly sendsPerSecond: number | null
  /** Units in a calendar month (UTC). */
  readonly unitsPerMonth: number | null
  readonly wsConnections: number | null
  readonly wsSubscriptions: number | null
  readonly grpcStreams: number | null
  readonly grpcAccountsPerStream: number | null
  readonly requestBytes: number
  readonly batchItems: number
  /** Own cost or own rate of single methods. */
  readonly methods: Readonly<Record<string, MethodLimit>>
}

export type MethodLimit = { readonly cost?: number | undefined; readonly perSecond?: number | undefined }

export type LimitName = Exclude<keyof Limits, 'methods'> | 'methodPerSecond'

/** How long a bucket may save up: a short burst that averages within the plan passes. */
export const BURST_SECONDS = 10

export const LIMIT_WORDS = {
  unitsPerSecond: 'units per second',
  sendsPerSecond: 'sendTransaction calls per second',
  unitsPerMonth: 'units per calendar month',
  wsConnections: 'open WebSocket connections',
  wsSubscriptions: 'live WebSocket subscriptions',
  grpcStreams: 'open gRPC streams',
  grpcAccountsPerStream: 'accounts named in one gRPC stream',
  requestBytes: 'bytes in one request body',
  batchItems: 'calls in one batch',
  methodPerSecond: 'calls of this method per second',
} as const satisfies Record<LimitName, string>
