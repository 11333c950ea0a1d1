import { encodeBase58 } from '../solana/base58.ts'
import { isSigner, isWritableStatic } from '../solana/transaction.ts'
import type { ParsedTransaction } from '../solana/transaction-types.ts'
import { SYSTEM_PROGRAM } from './addresses.ts'
import type { EngineAccount } from './engine-protocol.ts'
import { LAMPORTS_PER_SIGNATURE } from './fees.ts'
import { sha256 } from './poh.ts'

/** Layout of a nonce account: version u32, state u32, authority 32, nonce 32, lamports per signature u64. */
const NONCE_BYTES = 80
const CURRENT_VERSION = 1
const INITIALIZED = 1
const AUTHORITY_AT = 8
const NONCE_AT = 40
const LAMPORTS_AT = 72

const ADVANCE_NONCE = 4

/** Where the nonce account stands among the static keys, if the transaction has the form of a durable nonce transaction. */
export function nonceAccountIndex(transaction: ParsedTransaction): number | undefined {
  const first = transaction.instructions[0]
  if (!first) return undefined
  if (encodeBase58(transaction.staticKeys[first.programIdIndex] as Uint8Array) !== SYSTEM_PROGRAM) return undefined
  const { data } = first
  if (data.length < 4 || data[0] !== ADVANCE_NONCE || data[1] !== 0 || data[2] !== 0 || data[3] !== 0) return undefined
  const index = first.accounts[0]
  if (index === undefined || index >= transaction.staticKeys.length) return undefined
  return isWritableStatic(transaction, index) ? index : undefined
}

/** Whether `account` holds the nonce the transaction was signed for, under an authority that signed, and can advance in this block. */
export function isNonceUsable(
  transaction: ParsedTransaction,
  account: EngineAccount | null,
  parentBlockhash: Uint8Array,
): boolean {
  if (!account || !isNonceAccount(account)) return false
  const { data } = account
  const nonce = data.subarray(NONCE_AT, NONCE_AT + 32)
  if (!equal(nonce, transaction.recentBlockhash)) return false
  if (equal(nonce, durableNonce(parentBlockhash))) return false
  const authority = data.subarray(AUTHORITY_AT, AUTHORITY_AT + 32)
  const first = transaction.instructions[0]
  return first !== undefined && first.accounts.some((index) => isSignerKey(transaction, index, authority))
}

/** The account after its nonce moved on. A failed durable nonce transaction leaves this behind too. */
export function advancedNonce(account: EngineAccount, parentBlockhash: Uint8Array): EngineAccount {
  const data = new Uint8Array(account.data)
  data.set(durableNonce(parentBlockhash), NONCE_AT)
  new DataView(data.buffer).setBigUint64(LAMPORTS_AT, LAMPORTS_PER_SIGNATURE, true)
  return { ...account, data }
}

/** `DurableNonce::from_blockhash` of the Solana SDK. */
function durableNonce(blockhash: Uint8Array): Uint8Array {
  return sha256(PREFIX, blockhash)
}

const PREFIX = new TextEncoder().encode('DURABLE_NONCE')

function isNonceAccount({ owner, data }: EngineAccount): boolean {
  if (data.length !== NONCE_BYTES || owner.some((byte) => byte !== 0)) return false
  const view = new DataView(data.buffer, data.byteOffset)
  return view.getUint32(0, true) === CURRENT_VERSION && view.getUint32(4, true) === INITIALIZED
}

function isSignerKey(transaction: ParsedTransaction, index: number, key: Uint8Array): boolean {
  const own = transaction.staticKeys[index]
  return own !== undefined && isSigner(transaction, index) && equal(own, key)
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}
