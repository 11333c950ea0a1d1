import type { ConflictData, ContentionData, Hex, Lifecycle, Stage } from './stream-events.ts'

/** HTTP routes of the execution service. Reads allow any origin; `open` routes need no token even with `execution.auth = "token"`. */
export const EXECUTION_ROUTES = [
  { method: 'GET', path: '/v1/tps', open: false, brief: 'Transactions per second over the last 2.5 blocks.' },
  { method: 'GET', path: '/v1/contention', open: false, brief: 'Contention of the proposal that was executed last.' },
  { method: 'GET', path: '/v1/conflicts', open: false, brief: 'Conflict waves of the newest block.' },
  { method: 'GET', path: '/v1/top-accesses', open: false, brief: 'Most accessed accounts and storage slots.' },
  { method: 'GET', path: '/v1/status', open: false, brief: 'State of the service and its resume window.' },
  {
    method: 'GET',
    path: '/v1/blocks',
    open: false,
    brief: 'Figures of the last blocks, oldest first; ?count= for fewer.',
  },
  { method: 'GET', path: '/v1/blocks/lifecycle', open: false, brief: 'Stages of every tracked block.' },
  {
    method: 'GET',
    path: '/v1/blocks/:number/lifecycle',
    open: false,
    brief: 'Stages of one block: of a tracked one, else of one in the history that was verified or rejected.',
  },
  {
    method: 'GET',
    path: '/v1/blocks/:number/contention',
    open: false,
    brief: 'Contention of one block: of its finalized proposal, else of the latest one.',
  },
  {
    method: 'GET',
    path: '/v1/blocks/:number/transactions',
    open: false,
    brief: 'Transactions of one block; ?limit= and ?offset= for a page of them.',
  },
  {
    method: 'GET',
    path: '/v1/history',
    open: false,
    brief: 'TPS, gas and block time of the last hour, the last blocks, and incidents; kept over restarts.',
  },
  {
    method: 'GET',
    path: '/v1/search',
    open: false,
    brief: 'Blocks, transactions and contracts by ?q=: number, hash, address, name, or the beginning of one.',
  },
  {
    method: 'GET',
    path: '/v1/contracts/:address',
    open: false,
    brief: 'Accesses and contention of one contract in the last blocks.',
  },
  {
    method: 'GET',
    path: '/health',
    open: true,
    brief: '200, or 503 from 30 s after the last event until the next one.',
  },
  { method: 'GET', path: '/metrics', open: false, brief: 'Prometheus text.' },
  { method: 'GET', path: '/', open: true, brief: 'The dashboard; with an upgrade the stream.' },
  { method: 'POST', path: '/', open: false, brief: 'JSON-RPC 2.0 over the last blocks.' },
] as const

/**
 * POST with the token in a header, if the service requires tokens: returns `{"ticket","expires_at"}`. For 60 s the ticket opens
 * `/v1/ws?ticket=…`, for clients that cannot set WebSocket headers, such as browsers.
 */
export const EXECUTION_TICKET_PATH = '/v1/ws-ticket'

/**
 * Header of every response to `POST /`: the block numbers that can be read, as ranges without gaps, `FROM-TO` or `FROM-TO, FROM-TO`, oldest first;
 * absent before the first block. There are several where the service did not run or events of the source were lost. Other blocks are null.
 */
export const BLOCKS_HELD_HEADER = 'x-sluice-blocks-held'

/**
 * Series that only /metrics of the execution service exposes, so that a scraper of both listeners gets each series once.
 */
export function isExecutionMetric(name: string): boolean {
  return name.startsWith('sluice_execution_')
}

/** Methods of `POST /`. */
export const EXECUTION_RPC_METHODS = [
  'eth_chainId',
  'net_version',
  'web3_clientVersion',
  'eth_blockNumber',
  'eth_syncing',
  'eth_getBlockByNumber',
  'eth_getBlockByHash',
  'eth_getBlockTransactionCountByNumber',
  'eth_getBlockTransactionCountByHash',
  'eth_getTransactionByHash',
  'eth_getTransactionByBlockNumberAndIndex',
  'eth_getTransactionByBlockHashAndIndex',
  'eth_getTransactionReceipt',
  'eth_getBlockReceipts',
  'eth_getLogs',
] as const
export type ExecutionRpcMethod = (typeof EXECUTION_RPC_METHODS)[number]

/** GET /v1/tps. 0 until three blocks in a row have ended. */
export type TpsRecord = { readonly tps: number }

/** GET /v1/status: exactly these fields. */
export type StatusRecord = {
  readonly status: 'healthy' | 'degraded'
  readonly block_number: number
  readonly connected_clients: number
  readonly uptime_secs: number
  readonly last_event_age_secs: number
  readonly ring_seqno: number
  /** 0 and 0 while the resume buffer is empty. */
  readonly oldest_seqno: number
  readonly newest_seqno: number
}

/** GET /health: exactly these fields. */
export type HealthRecord = {
  readonly jsonrpc: '2.0'
  readonly result: { readonly healthy: boolean; readonly number: number; readonly last_event_age_secs: number }
}

/** The latest step of a block together with its history. */
export type LifecycleRecord = Lifecycle & {
  readonly current_stage: Stage
  readonly eth_block_hash?: Hex
  /** Milliseconds since Proposed for each stage reached. */
  readonly stage_timings_ms: Readonly<Partial<Record<Stage, number>>>
  readonly execution_time_ms?: number
  readonly total_age_ms: number
}

/** GET /v1/blocks, for charts. Figures are null for a block with missing events. */
export type BlockSummary = {
  readonly block_number: number
  /** Null where the two blocks before it are not known. */
  readonly tps: number | null
  readonly contention: Omit<ContentionData, 'top_contended_slots' | 'top_contended_contracts' | 'contract_edges'> | null
  readonly conflicts: ConflictData | null
}

export type RecentBlocks = {
  readonly blocks: readonly BlockSummary[]
  /** The block numbers that JSON-RPC can read, as ranges without gaps, oldest first. */
  readonly held: readonly { readonly from: number; readonly to: number }[]
}

/** Error responses of every route except `POST /`. */
export type RouteError = { readonly error: string }
