/**
 * Every limit a plan can set, by the name that a refusal uses. `null` means unlimited.
 * Quota belongs to the token: every machine, connection and interface that uses it shares one budget.
 */
export type Limits = {
  /** Token bucket over all three interfaces, with a burst of ten seconds. */
  readonly unitsPerSecond: number | null
  /** A separate bucket for `sendTransaction`, in addition to the units. */
  readonly sendsPerSecond: number | null
  /** Units in a calendar month (UTC). */
  readonly unitsPerMonth: number | null
  readonly wsConnections: number | null
  readonly wsSubscriptions: number | null
  readonly grpcStreams: number | null
  readonly grpcAccountsPerStream: number | null
  /** Filter kinds that a SubscribeRequest may contain; null allows all. */
  readonly grpcKinds: readonly GrpcKind[] | null
  /** Base58 accounts and programs that no filter may match. A filter without accounts and owners matches all, so it is refused too. */
  readonly grpcBlockedOwners: readonly string[]
  /** Whether a Subscribe stream resumes on another node when its node is lost; otherwise it ends with UNAVAILABLE. */
  readonly grpcResume: boolean
  readonly requestBytes: number
  readonly batchItems: number
  /** Cost or rate overrides of single methods. */
  readonly methods: Readonly<Record<string, MethodLimit>>
}

export type MethodLimit = { readonly cost?: number | undefined; readonly perSecond?: number | undefined }

/** Limits that are a number, with a label in `LIMIT_LABELS`. */
export type NumberLimit = Exclude<keyof Limits, 'methods' | 'grpcKinds' | 'grpcBlockedOwners' | 'grpcResume'>
export type LimitName = NumberLimit | 'methodPerSecond'

/** Filter kinds of geyser.Geyser, by their names in geyser.proto. */
export const GRPC_KINDS = [
  'accounts',
  'slots',
  'transactions',
  'transactions_status',
  'blocks',
  'blocks_meta',
  'entry',
  'block_footer',
  'deshred_transactions',
] as const
export type GrpcKind = (typeof GRPC_KINDS)[number]

/** The burst of a token bucket, in seconds of its rate. */
export const BURST_SECONDS = 10

export const LIMIT_LABELS = {
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
