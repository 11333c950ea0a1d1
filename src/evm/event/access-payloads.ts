import { layout } from './payload-layout.ts'

/** Payloads of state access events, as the format lays them out. Names are the format's own. */

/** `access_context`: whether a transaction touched the state, or the block before its first or after its last one. */
export const ACCESS_CONTEXT = { prologue: 0, transaction: 1, epilogue: 2 } as const

export const ACCOUNT_ACCESS_LIST_HEADER = layout(8, { entry_count: ['u32', 0], access_context: ['u8', 4] })

export const ACCOUNT_ACCESS = layout(152, {
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

export const STORAGE_ACCESS = layout(124, {
  address: ['address', 0],
  index: ['u32', 20],
  access_context: ['u8', 24],
  modified: ['bool', 25],
  transient: ['bool', 26],
  key: ['bytes32', 27],
  start_value: ['bytes32', 59],
  end_value: ['bytes32', 91],
})
