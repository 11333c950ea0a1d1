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
  /** Kinds of filter a SubscribeRequest may hold; null allows all. */
  readonly grpcKinds: readonly GrpcKind[] | null
  /** Accounts and programs, as base58, that no filter may ask for; a filter that names nothing would, so it may not either. */
  readonly grpcBlockedOwners: readonly string[]
  /** Whether a Subscribe stream whose node is lost goes on at another node; otherwise it ends with UNAVAILABLE. */
  readonly grpcResume: boolean
  readonly requestBytes: number
  readonly batchItems: number
  /** Own cost or own rate of single methods. */
  readonly methods: Readonly<Record<string, MethodLimit>>
}

export type MethodLimit = { readonly cost?: number | undefined; readonly perSecond?: number | undefined }

/** Limits that are a number, with words of their own in `LIMIT_WORDS`. */
export type NumberLimit = Exclude<keyof Limits, 'methods' | 'grpcKinds' | 'grpcBlockedOwners' | 'grpcResume'>
export type LimitName = NumberLimit | 'methodPerSecond'

/** Kinds of filter in requests of geyser.Geyser, by their names in geyser.proto. */
export const GRPC_KINDS = [
  'accounts',
  'slots',
  'transactions',
  'transactions_status',
  'blocks',
  'blocks_meta',
  'entry',
  'deshred_transactions',
] as const
export type GrpcKind = (typeof GRPC_KINDS)[number]

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
