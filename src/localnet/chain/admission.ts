import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { nonceAccountIndex } from '../../solana/transaction/durable-nonce.ts'
import { locksTooMany, parseTransaction } from '../../solana/transaction/transaction.ts'
import { type ParsedTransaction, SANITIZE_LIMITS } from '../../solana/transaction/types.ts'
import { budgetFault } from '../engine/compute-budget.ts'
import { BLOCKHASH_AGE_MAX, type BlockhashQueue, isValidAge } from './blockhash-queue.ts'
import type { TransactionError } from './model.ts'

export type Admission =
  | {
      readonly ok: true
      readonly signature: string
      readonly transaction: ParsedTransaction
      /** The blockhash is not a recent one: the engine must find it in a nonce account. */
      readonly nonce: boolean
    }
  | { readonly ok: false; readonly err: TransactionError }

export type AdmissionView = {
  readonly blockhashes: BlockhashQueue
  readonly headHeight: number
  /** Whether the transaction has landed or is being executed. */
  isKnown(signature: string): boolean
}

/** Checks a transaction without executing it: as in Agave the age of its blockhash first, then whether it has landed, then what it requests of the runtime. The strict parser also rejects bytes that would abort the engine. */
export function admit(
  wire: Uint8Array,
  view: AdmissionView,
  { replaceBlockhash = false, ageMax = BLOCKHASH_AGE_MAX } = {},
): Admission {
  const parsed = parseTransaction(wire, SANITIZE_LIMITS)
  if (!parsed.ok) return { ok: false, err: 'SanitizeFailure' }
  const { transaction } = parsed
  if (!hasRequiredConfig(transaction)) return { ok: false, err: 'SanitizeFailure' }
  const signature = encodeBase58(transaction.signatures[0] as Uint8Array)
  // The engine refuses it after it has resolved its lookup tables, whichever its blockhash is.
  if (locksTooMany(transaction)) return { ok: true, signature, transaction, nonce: false }
  const fault = budgetFault(transaction)
  const refuse = (err: TransactionError): Admission => ({ ok: false, err })
  const accept = (nonce: boolean): Admission =>
    fault === undefined ? { ok: true, signature, transaction, nonce } : refuse(fault)
  // With another blockhash it is another transaction than one that has landed.
  if (replaceBlockhash) return accept(false)

  const age = view.blockhashes.ageAt(encodeBase58(transaction.recentBlockhash), view.headHeight)
  if (isValidAge(age, ageMax)) {
    return view.isKnown(signature) ? refuse('AlreadyProcessed') : accept(false)
  }
  return nonceAccountIndex(transaction) === undefined ? refuse('BlockhashNotFound') : accept(true)
}

/** A v1 transaction without these two values requests zero of both and cannot execute (SIMD-0385). */
function hasRequiredConfig({ config }: ParsedTransaction): boolean {
  return config === null || (config.computeUnitLimit !== null && config.loadedAccountsDataSizeLimit !== null)
}
