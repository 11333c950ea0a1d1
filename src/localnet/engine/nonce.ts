import {
  isNonceAuthorized,
  NONCE_ACCOUNT_BYTES,
  NONCE_AT,
  readNonceAccount,
} from '../../solana/transaction/durable-nonce.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'
import { sha256 } from '../chain/poh.ts'
import { LAMPORTS_PER_SIGNATURE } from './fees.ts'
import type { EngineAccount } from './protocol.ts'

const LAMPORTS_AT = 72

/** Whether `account` holds the nonce the transaction was signed for, under an authority that signed, and can advance in this block. */
export function isNonceUsable(
  transaction: ParsedTransaction,
  account: EngineAccount | null,
  parentBlockhash: Uint8Array,
): boolean {
  const held = account && hasNonceShape(account) ? readNonceAccount(account.data) : undefined
  if (held === undefined) return false
  const { nonce, authority } = held
  if (!equal(nonce, transaction.recentBlockhash)) return false
  if (equal(nonce, durableNonce(parentBlockhash))) return false
  return isNonceAuthorized(transaction, authority)
}

/** The account with its nonce advanced. A failed durable nonce transaction advances it too. */
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

function hasNonceShape({ owner, data }: EngineAccount): boolean {
  return data.length === NONCE_ACCOUNT_BYTES && owner.every((byte) => byte === 0)
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}
