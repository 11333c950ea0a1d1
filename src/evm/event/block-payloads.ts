import { layout } from './payload-layout.ts'

/** Payloads of block and consensus events, as the format lays them out. Names are the format's own. */

export const RECORD_ERROR = layout(
  16,
  {
    error_type: ['u16', 0],
    dropped_event_type: ['u16', 2],
    truncated_payload_size: ['u32', 4],
    requested_payload_size: ['u64', 8],
  },
  // Never to be sliced by the length fields inside: those still hold the lengths of the whole event.
  { truncated_payload: ['bytes', 'truncated_payload_size'] },
)

export const BLOCK_START = layout(528, {
  id: ['bytes32', 0],
  block_number: ['u64', 32],
  round: ['u64', 40],
  epoch: ['u64', 48],
  proposal_epoch_nanos: ['u128', 64],
  chain_id: ['u256', 80],
  author_y_parity: ['u8', 112],
  author_x: ['bytes32', 113],
  parent_eth_hash: ['bytes32', 145],
  ommers_hash: ['bytes32', 184],
  beneficiary: ['address', 216],
  transactions_root: ['bytes32', 236],
  difficulty: ['u64', 272],
  number: ['u64', 280],
  gas_limit: ['u64', 288],
  timestamp: ['u64', 296],
  extra_data: ['bytes32', 304],
  extra_data_length: ['u64', 336],
  prev_randao: ['bytes32', 344],
  nonce: ['bytes8', 376],
  base_fee_per_gas: ['u256', 384],
  withdrawals_root: ['bytes32', 416],
  txn_count: ['u64', 448],
  base_fee_trend: ['u256', 456],
  base_fee_moment: ['u256', 488],
})

/** The reason stays a number: names of these codes may shift between versions of the node. */
export const BLOCK_REJECT = layout(4, { reason: ['u32', 0] })

export const BLOCK_END = layout(360, {
  eth_block_hash: ['bytes32', 0],
  state_root: ['bytes32', 32],
  receipts_root: ['bytes32', 64],
  logs_bloom: ['bytes256', 96],
  gas_used: ['u64', 352],
})

export const BLOCK_QC = layout(56, {
  id: ['bytes32', 0],
  block_number: ['u64', 32],
  round: ['u64', 40],
  epoch: ['u64', 48],
})

export const BLOCK_FINALIZED = layout(40, { id: ['bytes32', 0], block_number: ['u64', 32] })

export const BLOCK_VERIFIED = layout(8, { block_number: ['u64', 0] })

export const EVM_ERROR = layout(16, { domain_id: ['u64', 0], status_code: ['i64', 8] })

/** Perf markers, TXN_HEADER_END and TXN_END carry nothing. */
export const EMPTY = layout(0, {})
