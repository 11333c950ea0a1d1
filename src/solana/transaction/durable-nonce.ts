import { Buffer } from 'node:buffer'
import { isSigner, isWritableStatic } from './transaction.ts'
import type { ParsedTransaction } from './types.ts'

/** Layout of a nonce account: version u32, state u32, authority 32, nonce 32, lamports per signature u64. */
export const NONCE_ACCOUNT_BYTES = 80
const CURRENT_VERSION = 1
const INITIALIZED = 1
const AUTHORITY_AT = 8
export const NONCE_AT = 40

/** System Program instruction 4 (solana-system-interface, bincode: u32 discriminant). */
const ADVANCE_NONCE = [4, 0, 0, 0]

/**
 * The index of the nonce account among the static keys, if the transaction has the form of a durable nonce transaction: its first
 * instruction advances a writable account of the static keys (agave: get_durable_nonce).
 */
export function nonceAccountIndex(transaction: ParsedTransaction): number | undefined {
  const { instructions, staticKeys } = transaction
  const [first] = instructions
  if (first === undefined || !isSystemProgram(staticKeys[first.programIdIndex])) return undefined
  if (ADVANCE_NONCE.some((byte, at) => first.data[at] !== byte)) return undefined
  const [index] = first.accounts
  if (index === undefined || index >= staticKeys.length) return undefined
  return isWritableStatic(transaction, index) ? index : undefined
}

/** Decodes a nonce account; undefined unless the data is an initialized nonce account of the current version. */
export function readNonceAccount(
  data: Uint8Array,
): { readonly authority: Uint8Array; readonly nonce: Uint8Array } | undefined {
  if (data.length < NONCE_ACCOUNT_BYTES) return undefined
  const view = new DataView(data.buffer, data.byteOffset)
  if (view.getUint32(0, true) !== CURRENT_VERSION || view.getUint32(4, true) !== INITIALIZED) return undefined
  return { authority: data.subarray(AUTHORITY_AT, NONCE_AT), nonce: data.subarray(NONCE_AT, NONCE_AT + 32) }
}

/** Whether `authority` is among the accounts that sign the first instruction. */
export function isNonceAuthorized(transaction: ParsedTransaction, authority: Uint8Array): boolean {
  const accounts = transaction.instructions[0]?.accounts ?? []
  return accounts.some((index) => {
    const key = transaction.staticKeys[index]
    return key !== undefined && isSigner(transaction, index) && Buffer.compare(key, authority) === 0
  })
}

function isSystemProgram(key: Uint8Array | undefined): boolean {
  return key?.every((byte) => byte === 0) === true
}
