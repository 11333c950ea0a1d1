import type { Hex, Stage } from './stream-events.ts'

/**
 * What the execution service remembers, over its restarts: `GET /v1/history`, and the routes that look things up in it. Times are unix
 * milliseconds. Lists of equal length are columns: the values at one index belong together. Null is a value that is not known; nothing is
 * filled in.
 */

/** GET /v1/history. */
export type History = {
  /** When this was made, on the clock of the service. */
  readonly now_ms: number
  /** True: the data is made up by a simulated chain. */
  readonly simulated: boolean
  readonly seconds: HistorySeconds
  readonly blocks: HistoryBlocks
  readonly contention: HistoryContention
  /** Oldest first. */
  readonly incidents: readonly HistoryIncident[]
}

/** One entry per second; the last one is a second that is over. Null where no block ended in that second. */
export type HistorySeconds = {
  /** Start of the first second. */
  readonly from_ms: number
  readonly step_ms: 1000
  /** Mean of the TPS values of the second. */
  readonly tps: readonly (number | null)[]
  /** Transactions of the blocks that ended in the second. */
  readonly txns: readonly (number | null)[]
  /** Gas used by these blocks. */
  readonly gas_used: readonly (number | null)[]
  /** Mean block time of these blocks. */
  readonly block_time_ms: readonly (number | null)[]
}

/** The last proposals, in the order in which they were proposed, abandoned ones included. Figures are null for a block with missing events. */
export type HistoryBlocks = {
  readonly number: readonly number[]
  /** The consensus id, as `block_hash` of Lifecycle. */
  readonly id: readonly Hex[]
  /** When the block was proposed. */
  readonly time_ms: readonly number[]
  /** Since the block with the number before was proposed. */
  readonly block_time_ms: readonly (number | null)[]
  readonly txns: readonly number[]
  readonly gas_used: readonly (number | null)[]
  readonly gas_limit: readonly (number | null)[]
  readonly tps: readonly (number | null)[]
  readonly stage: readonly Stage[]
  /** Milliseconds from Proposed to a stage. */
  readonly voted_ms: readonly (number | null)[]
  readonly finalized_ms: readonly (number | null)[]
  readonly verified_ms: readonly (number | null)[]
  readonly rejected_ms: readonly (number | null)[]
  readonly execution_ms: readonly (number | null)[]
  /** The figures of ContentionData and ConflictData with the same names. */
  readonly block_wall_time_ns: readonly (number | null)[]
  readonly total_tx_time_ns: readonly (number | null)[]
  readonly parallel_efficiency_pct: readonly (number | null)[]
  readonly total_unique_slots: readonly (number | null)[]
  readonly contended_slot_count: readonly (number | null)[]
  readonly contention_ratio: readonly (number | null)[]
  readonly conflict_share: readonly (number | null)[]
  readonly depth: readonly (number | null)[]
}

/**
 * The lists of ContentionData of the last blocks, reduced to the slots and contracts that are most contended over all of them. The lists of a
 * block are flat: an index into `slots` or `contracts` is followed by its figures.
 */
export type HistoryContention = {
  readonly slots: readonly (readonly [address: Hex, slot: Hex])[]
  readonly contracts: readonly Hex[]
  readonly number: readonly number[]
  readonly id: readonly Hex[]
  /** Each one, by block: slot, txn_count, access_count, and so on. */
  readonly top_contended_slots: readonly (readonly number[])[]
  /** Each one, by block: contract, total_slots, contended_slots, total_accesses, and so on. */
  readonly top_contended_contracts: readonly (readonly number[])[]
  /** Each one, by block: contract_a, contract_b, shared_txn_count, and so on. */
  readonly contract_edges: readonly (readonly number[])[]
}

export type HistoryIncident = {
  readonly from_ms: number
  /** Null while it lasts. Equal to `from_ms` for what has no duration. */
  readonly to_ms: number | null
} & HistoryIncidentCause

export type HistoryIncidentCause =
  /** No event for more than 10 s: /v1/status was `degraded`. */
  | { readonly kind: 'source_silent' }
  /** The service did not run: from its last record to its start. */
  | { readonly kind: 'service_stopped' }
  /** Events of the source were lost. */
  | { readonly kind: 'ring_gap'; readonly events_lost: number; readonly blocks_dropped: number }
  /** The node restarted: windows and counters start again. */
  | { readonly kind: 'ring_restart' }
  /** Frames were dropped for clients that read too slowly. */
  | { readonly kind: 'backpressure'; readonly frames_dropped: number }
  /** A proposal was rejected. */
  | { readonly kind: 'rejection'; readonly block_number: number }

/** GET /v1/blocks/:number/transactions. */
export type BlockTransactions = {
  readonly block_number: number
  readonly block_id: Hex
  /** The Ethereum hash. */
  readonly block_hash: Hex
  /** Time of the block on the chain, in seconds. */
  readonly timestamp: number
  readonly gas_used: number
  readonly gas_limit: number
  readonly txn_count: number
  readonly transactions: readonly BlockTransaction[]
  /** `offset` of the next page; null at the end. */
  readonly next_offset: number | null
}

export type BlockTransaction = {
  readonly index: number
  readonly hash: Hex
  readonly from: Hex
  /** Null for the creation of a contract. */
  readonly to: Hex | null
  /** In wei, a quantity. */
  readonly value: Hex
  readonly status: 'success' | 'failed'
  readonly gas_used: number
  readonly log_count: number
  /** From the start of the block to the start of the transaction; null where the source has no times. */
  readonly waiting_ns: number | null
  readonly execution_ns: number | null
}

/** GET /v1/search?q=: what the service holds under a number, hash, address, name, or the beginning of one. */
export type SearchResults = {
  readonly query: string
  /** The best first. */
  readonly results: readonly SearchResult[]
  /** True: more were found than are listed. */
  readonly truncated: boolean
}

export type SearchResult =
  /** `hash` is the Ethereum hash; null until the block was executed. */
  | { readonly kind: 'block'; readonly number: number; readonly id: Hex; readonly hash: Hex | null }
  | { readonly kind: 'transaction'; readonly hash: Hex; readonly block_number: number; readonly index: number }
  /** `name`: as in /page/names.json. */
  | { readonly kind: 'contract'; readonly address: Hex; readonly name: string | null }

/** GET /v1/contracts/:address: what is known of an account or contract from the last blocks. */
export type ContractFigures = {
  readonly address: Hex
  readonly name: string | null
  /** The blocks that were examined: those with figures, of one proposal per number. */
  readonly window: {
    readonly blocks: number
    readonly from_block: number
    readonly to_block: number
    readonly from_ms: number
    readonly to_ms: number
  }
  /** Storage accesses in these blocks; null if it is in none of them among the 32 most accessed or the 15 most contended contracts. */
  readonly storage: {
    /** Blocks that it was found in. */
    readonly blocks: number
    readonly accesses: number
    /** Share of all storage accesses in the examined blocks, 0 to 1. */
    readonly share: number
    /** Sums over the blocks it was found in. */
    readonly total_slots: number
    readonly contended_slots: number
    /** contended_slots / total_slots. */
    readonly contention_score: number
  } | null
  /** From the newest TopAccesses; null where it is not listed. */
  readonly top_accesses: {
    /** 1 is the most accessed account. */
    readonly rank: number
    readonly count: number
    /** Share of all account accesses since the last reset, 0 to 1. */
    readonly share: number
  } | null
  /** Blocks that it was found in, oldest first. */
  readonly blocks: {
    readonly number: readonly number[]
    readonly accesses: readonly number[]
    readonly total_slots: readonly number[]
    readonly contended_slots: readonly number[]
  }
  /** Its most contended slots; sums over the examined blocks. */
  readonly slots: readonly { readonly slot: Hex; readonly txn_count: number; readonly blocks: number }[]
  /** Contracts that transactions touched together with it. */
  readonly neighbours: readonly { readonly address: Hex; readonly shared_txn_count: number }[]
}
