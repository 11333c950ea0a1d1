import { layout } from './payload-layout.ts'

/** Payloads of transaction events, as the format lays them out. Names are the format's own. */

export const TXN_HEADER_START = layout(
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

export const TXN_ACCESS_LIST_ENTRY = layout(
  28,
  { index: ['u32', 0], address: ['address', 4], storage_key_count: ['u32', 24] },
  { storage_keys: ['bytes32', 'storage_key_count'] },
)

export const TXN_AUTH_LIST_ENTRY = layout(168, {
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

/** The reason stays a number: names of these codes may shift between versions of the node. */
export const TXN_REJECT = layout(4, { reason: ['u32', 0] })

export const TXN_EVM_OUTPUT = layout(24, {
  status: ['bool', 0],
  log_count: ['u32', 4],
  gas_used: ['u64', 8],
  call_frame_count: ['u32', 16],
})

export const TXN_LOG = layout(
  32,
  { index: ['u32', 0], address: ['address', 4], topic_count: ['u8', 24], data_length: ['u32', 28] },
  { topics: ['bytes32', 'topic_count'], data: ['bytes', 'data_length'] },
)

export const TXN_CALL_FRAME = layout(
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
