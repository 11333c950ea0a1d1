import { type Layout, layout, type PayloadOf } from './payload-layout.ts'
import type { EventName } from './type.ts'

/** Payload structs of the execution event format, with the field names of the format. */

/** Values of `error_type` of a RECORD_ERROR, the event that replaces one that could not be recorded. */
export const RECORD_ERROR_TYPE = { payloadOver4GiB: 1, payloadWouldExpire: 2, missingEvent: 3 } as const

/** Values of `access_context`: the access belongs to a transaction, or to the block before its first or after its last one. */
export const ACCESS_CONTEXT = { prologue: 0, transaction: 1, epilogue: 2 } as const

const RECORD_ERROR = layout(
  16,
  {
    error_type: ['u16', 0],
    dropped_event_type: ['u16', 2],
    truncated_payload_size: ['u32', 4],
    requested_payload_size: ['u64', 8],
  },
  // Not sliced by the length fields inside it: those hold the lengths of the complete event.
  { truncated_payload: ['bytes', 'truncated_payload_size'] },
)

const BLOCK_START = layout(528, {
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

/** The reason is a number: the names of these codes may change between versions of the node. */
const BLOCK_REJECT = layout(4, { reason: ['u32', 0] })

const BLOCK_END = layout(360, {
  eth_block_hash: ['bytes32', 0],
  state_root: ['bytes32', 32],
  receipts_root: ['bytes32', 64],
  logs_bloom: ['bytes256', 96],
  gas_used: ['u64', 352],
})

const BLOCK_QC = layout(56, {
  id: ['bytes32', 0],
  block_number: ['u64', 32],
  round: ['u64', 40],
  epoch: ['u64', 48],
})

const BLOCK_FINALIZED = layout(40, { id: ['bytes32', 0], block_number: ['u64', 32] })

const BLOCK_VERIFIED = layout(8, { block_number: ['u64', 0] })

const EVM_ERROR = layout(16, { domain_id: ['u64', 0], status_code: ['i64', 8] })

/** Perf markers, TXN_HEADER_END and TXN_END have no payload. */
const EMPTY = layout(0, {})

const TXN_HEADER_START = layout(
  352,
  {
    txn_hash: ['bytes32', 0],
    sender: ['address', 32],
    txn_type: ['u8', 56],
    chain_id: ['u256', 64],
    nonce: ['u64', 96],
    gas_limit: ['u64', 104],
    max_fee_per_gas: ['u256', 112],
    max_priority_fee_per_gas: ['u256', 144],
    value: ['u256', 176],
    to: ['address', 208],
    is_contract_creation: ['bool', 228],
    r: ['u256', 232],
    s: ['u256', 264],
    y_parity: ['bool', 296],
    max_fee_per_blob_gas: ['u256', 304],
    data_length: ['u32', 336],
    blob_versioned_hash_length: ['u32', 340],
    access_list_count: ['u32', 344],
    auth_list_count: ['u32', 348],
  },
  { data: ['bytes', 'data_length'], blob_versioned_hashes: ['bytes32', 'blob_versioned_hash_length'] },
)

const TXN_ACCESS_LIST_ENTRY = layout(
  28,
  { index: ['u32', 0], address: ['address', 4], storage_key_count: ['u32', 24] },
  { storage_keys: ['bytes32', 'storage_key_count'] },
)

const TXN_AUTH_LIST_ENTRY = layout(168, {
  index: ['u32', 0],
  chain_id: ['u256', 8],
  address: ['address', 40],
  nonce: ['u64', 64],
  y_parity: ['bool', 72],
  r: ['u256', 80],
  s: ['u256', 112],
  authority: ['address', 144],
  is_valid_authority: ['bool', 164],
})

/** The reason is a number: the names of these codes may change between versions of the node. */
const TXN_REJECT = layout(4, { reason: ['u32', 0] })

const TXN_EVM_OUTPUT = layout(24, {
  status: ['bool', 0],
  log_count: ['u32', 4],
  gas_used: ['u64', 8],
  call_frame_count: ['u32', 16],
})

const TXN_LOG = layout(
  32,
  { index: ['u32', 0], address: ['address', 4], topic_count: ['u8', 24], data_length: ['u32', 28] },
  { topics: ['bytes32', 'topic_count'], data: ['bytes', 'data_length'] },
)

const TXN_CALL_FRAME = layout(
  128,
  {
    index: ['u32', 0],
    caller: ['address', 4],
    call_target: ['address', 24],
    opcode: ['u8', 44],
    value: ['u256', 48],
    gas: ['u64', 80],
    gas_used: ['u64', 88],
    evmc_status: ['i32', 96],
    depth: ['u64', 104],
    input_length: ['u64', 112],
    return_length: ['u64', 120],
  },
  { input: ['bytes', 'input_length'], return_data: ['bytes', 'return_length'] },
)

const ACCOUNT_ACCESS_LIST_HEADER = layout(8, { entry_count: ['u32', 0], access_context: ['u8', 4] })

const ACCOUNT_ACCESS = layout(152, {
  index: ['u32', 0],
  address: ['address', 4],
  access_context: ['u8', 24],
  is_balance_modified: ['bool', 25],
  is_nonce_modified: ['bool', 26],
  prestate_nonce: ['u64', 32],
  prestate_balance: ['u256', 40],
  prestate_code_hash: ['bytes32', 72],
  modified_balance: ['u256', 104],
  modified_nonce: ['u64', 136],
  storage_key_count: ['u32', 144],
  transient_count: ['u32', 148],
})

const STORAGE_ACCESS = layout(124, {
  address: ['address', 0],
  index: ['u32', 20],
  access_context: ['u8', 24],
  modified: ['bool', 25],
  transient: ['bool', 26],
  key: ['bytes32', 27],
  start_value: ['bytes32', 59],
  end_value: ['bytes32', 91],
})

/** The payload layout of every event type. Every reader and writer of a field takes its offset from here. */
export const PAYLOADS = {
  RECORD_ERROR,
  BLOCK_START,
  BLOCK_REJECT,
  BLOCK_PERF_EVM_ENTER: EMPTY,
  BLOCK_PERF_EVM_EXIT: EMPTY,
  BLOCK_END,
  BLOCK_QC,
  BLOCK_FINALIZED,
  BLOCK_VERIFIED,
  TXN_HEADER_START,
  TXN_ACCESS_LIST_ENTRY,
  TXN_AUTH_LIST_ENTRY,
  TXN_HEADER_END: EMPTY,
  TXN_REJECT,
  TXN_PERF_EVM_ENTER: EMPTY,
  TXN_PERF_EVM_EXIT: EMPTY,
  TXN_EVM_OUTPUT,
  TXN_LOG,
  TXN_CALL_FRAME,
  TXN_END: EMPTY,
  ACCOUNT_ACCESS_LIST_HEADER,
  ACCOUNT_ACCESS,
  STORAGE_ACCESS,
  EVM_ERROR,
} satisfies Record<EventName, Layout>

export type EventPayload<N extends EventName> = PayloadOf<(typeof PAYLOADS)[N]>
