import { verifyEd25519 } from '../crypto/ed25519.ts'
import { readLegacyOrV0 } from './legacy.ts'
import {
  type ParsedTransaction,
  TRANSACTION_LIMITS,
  type TransactionFault,
  type TransactionLimits,
  type TransactionRead,
} from './types.ts'
import { readV1 } from './v1.ts'

export type { ParsedTransaction, TransactionFault } from './types.ts'

export type TransactionParse =
  | { readonly ok: true; readonly transaction: ParsedTransaction }
  | { readonly ok: false; readonly reason: TransactionFault }

/**
 * Parses one transaction in any of the three wire formats: accepts only canonical lengths, checks every index and limit, and refuses
 * trailing bytes. Never throws. The result's arrays are views into `wire`.
 */
export function parseTransaction(wire: Uint8Array, limits: TransactionLimits = TRANSACTION_LIMITS): TransactionParse {
  const read = readTransaction(wire, 0, limits)
  if (typeof read === 'string') return { ok: false, reason: read }
  if (read.wireLength !== wire.length) return { ok: false, reason: 'trailing-bytes' }
  return { ok: true, transaction: read }
}

/** As parseTransaction, for a transaction that begins at `offset` and may be followed by other bytes; `wireLength` of the result is its length. */
export function readTransaction(bytes: Uint8Array, offset: number, limits: TransactionLimits): TransactionRead {
  const first = bytes[offset]
  if (first === undefined) return 'truncated'
  // A legacy signature count never has the high bit: at most 12 signatures fit a packet (SIMD-0385 relies on this).
  if (first < 0x80) return readLegacyOrV0(bytes, offset, limits)
  return first === 0x81 ? readV1(bytes, offset, limits) : 'version-unsupported'
}

/** Faults that a node reports as a deserialization error; it reports all others as a sanitization error. */
export function isDecodeFault(reason: TransactionFault): boolean {
  return (
    reason === 'truncated' ||
    reason === 'too-large' ||
    reason === 'trailing-bytes' ||
    reason === 'length-not-canonical' ||
    reason === 'version-unsupported'
  )
}

export function isSigner(transaction: ParsedTransaction, index: number): boolean {
  return index < transaction.header.numRequiredSignatures
}

/** Whether the header marks this static key as writable. */
export function isWritableStatic(transaction: ParsedTransaction, index: number): boolean {
  const { numRequiredSignatures, numReadonlySigned, numReadonlyUnsigned } = transaction.header
  return index < numRequiredSignatures
    ? index < numRequiredSignatures - numReadonlySigned
    : index < transaction.staticKeys.length - numReadonlyUnsigned
}

/** Whether a node refuses to lock its accounts: static and loaded keys are locked, readonly ones too. */
export function locksTooMany({ staticKeys, addressTableLookups }: ParsedTransaction): boolean {
  let accounts = staticKeys.length
  for (const lookup of addressTableLookups) accounts += lookup.writableIndexes.length + lookup.readonlyIndexes.length
  return accounts > TRANSACTION_LIMITS.accountLocksMax
}

/** Whether every signature is valid for its key and the message. */
export function verifySignatures(transaction: ParsedTransaction): boolean {
  return transaction.signatures.every((signature, index) =>
    verifyEd25519(transaction.message, signature, transaction.staticKeys[index] as Uint8Array),
  )
}
