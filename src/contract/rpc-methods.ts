/**
 * Costs and kinds of Solana's JSON-RPC methods; a plan may set other costs. An unlisted method is forwarded at the default cost, counted under the
 * label `other`, and never retried on a second upstream.
 */
export type RpcMethod = {
  /** Units of the token's budget; a plan may override it. */
  readonly cost: number
  /** A `read` may be retried on another node; a `write` is sent once. */
  readonly kind: 'read' | 'write'
  /** Heavy methods get the longer upstream deadline. */
  readonly heavy?: true
}

const UNKNOWN_METHOD: RpcMethod = { cost: 1, kind: 'write' }

const read = (cost: number): RpcMethod => ({ cost, kind: 'read' })
const heavyRead = (cost: number): RpcMethod => ({ cost, kind: 'read', heavy: true })

/** The method whose calls also draw on `sendsPerSecond`. */
export const SEND_METHOD = 'sendTransaction'

export const RPC_METHODS: Readonly<Record<string, RpcMethod>> = {
  getAccountInfo: read(2),
  // The genesis certificate of Alpenglow. Null before the migration; a node older than 4.3 responds with -32601.
  getAgGenesisCert: read(1),
  getBalance: read(1),
  getBlock: heavyRead(5),
  getBlockCommitment: read(1),
  getBlockHeight: read(1),
  getBlockProduction: read(1),
  getBlockTime: read(1),
  getBlocks: heavyRead(2),
  getBlocksWithLimit: heavyRead(2),
  getClusterNodes: read(1),
  getEpochInfo: read(1),
  getEpochSchedule: read(1),
  getFeeForMessage: read(1),
  getFirstAvailableBlock: read(1),
  getGenesisHash: read(1),
  getHealth: read(1),
  getHighestSnapshotSlot: read(1),
  getIdentity: read(1),
  getInflationGovernor: read(1),
  getInflationRate: read(1),
  getInflationReward: heavyRead(5),
  getLargestAccounts: heavyRead(10),
  getLatestBlockhash: read(1),
  getLeaderSchedule: read(1),
  getMaxRetransmitSlot: read(1),
  getMaxShredInsertSlot: read(1),
  getMinimumBalanceForRentExemption: read(1),
  getMultipleAccounts: read(5),
  getProgramAccounts: heavyRead(30),
  getRecentPerformanceSamples: read(1),
  getRecentPrioritizationFees: read(1),
  getSignatureStatuses: read(1),
  getSignaturesForAddress: heavyRead(5),
  getSlot: read(1),
  getSlotLeader: read(1),
  getSlotLeaders: read(1),
  getStakeMinimumDelegation: read(1),
  getSupply: heavyRead(10),
  getTokenAccountBalance: read(2),
  getTokenAccountsByDelegate: heavyRead(10),
  getTokenAccountsByOwner: heavyRead(10),
  getTokenLargestAccounts: heavyRead(10),
  getTokenSupply: read(1),
  getTransaction: heavyRead(10),
  getTransactionCount: read(1),
  getVersion: read(1),
  getVoteAccounts: read(1),
  isBlockhashValid: read(1),
  minimumLedgerSlot: read(1),
  requestAirdrop: { cost: 1, kind: 'write' },
  sendTransaction: { cost: 1, kind: 'write' },
  simulateTransaction: read(1),
}

/** The kinds of subscriptions over WebSocket. Each has `<kind>Subscribe`, `<kind>Unsubscribe` and `<kind>Notification`. */
export const PUBSUB_KINDS = [
  'account',
  'program',
  'logs',
  'signature',
  'slot',
  'slotsUpdates',
  'root',
  'block',
  'vote',
] as const

/** Methods of geyser.Geyser with one request and one response. Any other method may be a stream and needs a permit. */
export const GEYSER_UNARY = [
  'SubscribeReplayInfo',
  'Ping',
  'GetLatestBlockhash',
  'GetBlockHeight',
  'GetSlot',
  'IsBlockhashValid',
  'GetVersion',
] as const

/** The methods of the Bundle that are counted by name, in metrics and in usage. Other methods are forwarded all the same, and count as `other`. */
export const COUNTED_METHODS: readonly string[] = [
  ...Object.keys(RPC_METHODS),
  ...PUBSUB_KINDS.flatMap((kind) => [`${kind}Subscribe`, `${kind}Unsubscribe`]),
  'getRateLimits',
  ...GEYSER_UNARY,
  'Subscribe',
  'SubscribeDeshred',
  'SubscribeEntries',
  'SubscribeGossip',
]

const BY_NAME: ReadonlyMap<string, RpcMethod> = new Map(Object.entries(RPC_METHODS))

export function rpcMethod(name: string): RpcMethod {
  return BY_NAME.get(name) ?? UNKNOWN_METHOD
}
