import { z } from 'zod'
import type { BlockTransactions, ContractFigures, History, SearchResults } from '../execution-history.ts'
import { type Same, same } from './same.ts'
import { hex, stage } from './stream.ts'

/** Schemas of the history of the execution service and of the routes that look things up in it. */

const count = z.int().min(0)
const timeMs = z.int().describe('Unix milliseconds.')
const list = <Item extends z.ZodType>(item: Item) => z.array(item).readonly()
const numbers = list(z.number())
const column = list(z.number().nullable())

const seconds = z.strictObject({
  from_ms: timeMs,
  step_ms: z.literal(1000),
  tps: column.describe('Mean of the TPS values of each second; null where no block ended in it.'),
  txns: column,
  gas_used: column,
  block_time_ms: column,
})

const blocks = z.strictObject({
  number: numbers,
  id: list(hex),
  time_ms: numbers.describe('When the block was proposed, in unix milliseconds.'),
  block_time_ms: column.describe('Since the block with the number before was proposed.'),
  txns: numbers,
  gas_used: column,
  gas_limit: column,
  tps: column,
  stage: list(stage),
  voted_ms: column,
  finalized_ms: column,
  verified_ms: column,
  rejected_ms: column,
  execution_ms: column,
  block_wall_time_ns: column,
  total_tx_time_ns: column,
  parallel_efficiency_pct: column,
  total_unique_slots: column,
  contended_slot_count: column,
  contention_ratio: column,
  conflict_share: column,
  depth: column,
})

const contention = z.strictObject({
  slots: list(z.tuple([hex, hex]).readonly()),
  contracts: list(hex),
  number: numbers,
  id: list(hex),
  top_contended_slots: list(numbers).describe('Of each block: index of the slot, txn_count, access_count, and so on.'),
  top_contended_contracts: list(numbers).describe(
    'Of each block: index of the contract, total_slots, contended_slots, total_accesses, and so on.',
  ),
  contract_edges: list(numbers).describe('Of each block: two indexes of contracts, shared_txn_count, and so on.'),
})

const period = { from_ms: timeMs, to_ms: timeMs.nullable().describe('Null while it lasts.') }
const incident = z.discriminatedUnion('kind', [
  z.strictObject({ ...period, kind: z.literal('source_silent') }),
  z.strictObject({ ...period, kind: z.literal('service_stopped') }),
  z.strictObject({ ...period, kind: z.literal('ring_gap'), events_lost: count, blocks_dropped: count }),
  z.strictObject({ ...period, kind: z.literal('ring_restart') }),
  z.strictObject({ ...period, kind: z.literal('backpressure'), frames_dropped: count }),
  z.strictObject({ ...period, kind: z.literal('rejection'), block_number: count }),
])

export const history = z.strictObject({
  now_ms: timeMs,
  simulated: z.boolean().describe('True: all data is made up by a simulated chain.'),
  seconds,
  blocks,
  contention,
  incidents: list(incident),
})
same<Same<z.output<typeof history>, History>>()

export const blockTransactions = z.strictObject({
  block_number: count,
  block_id: hex,
  block_hash: hex.describe('The Ethereum hash.'),
  timestamp: count.describe('Seconds.'),
  gas_used: count,
  gas_limit: count,
  txn_count: count,
  transactions: list(
    z.strictObject({
      index: count,
      hash: hex,
      from: hex,
      to: hex.nullable().describe('Null for the creation of a contract.'),
      value: hex.describe('In wei.'),
      status: z.enum(['success', 'failed']),
      gas_used: count,
      log_count: count,
      waiting_ns: z.number().nullable().describe('From the start of the block to the start of the transaction.'),
      execution_ns: z.number().nullable(),
    }),
  ),
  next_offset: count.nullable().describe('Null at the end.'),
})
same<Same<z.output<typeof blockTransactions>, BlockTransactions>>()

export const searchResults = z.strictObject({
  query: z.string(),
  results: list(
    z.discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('block'), number: count, id: hex, hash: hex.nullable() }),
      z.strictObject({ kind: z.literal('transaction'), hash: hex, block_number: count, index: count }),
      z.strictObject({ kind: z.literal('contract'), address: hex, name: z.string().nullable() }),
    ]),
  ),
  truncated: z.boolean(),
})
same<Same<z.output<typeof searchResults>, SearchResults>>()

const share = z.number().describe('0 to 1.')

export const contractFigures = z.strictObject({
  address: hex,
  name: z.string().nullable(),
  window: z.strictObject({ blocks: count, from_block: count, to_block: count, from_ms: timeMs, to_ms: timeMs }),
  storage: z
    .strictObject({
      blocks: count,
      accesses: count,
      share,
      total_slots: count,
      contended_slots: count,
      contention_score: z.number(),
    })
    .nullable(),
  top_accesses: z.strictObject({ rank: z.int().min(1), count, share }).nullable(),
  blocks: z.strictObject({ number: numbers, accesses: numbers, total_slots: numbers, contended_slots: numbers }),
  slots: list(z.strictObject({ slot: hex, txn_count: count, blocks: count })),
  neighbours: list(z.strictObject({ address: hex, shared_txn_count: count })),
})
same<Same<z.output<typeof contractFigures>, ContractFigures>>()
