import assert from 'node:assert/strict'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { isSimpleVote } from '../../solana/transaction/simple-vote.ts'
import { type ParsedTransaction, parseTransaction } from '../../solana/transaction/transaction.ts'
import type { TransactionMeta, TransactionRecord } from './model.ts'

/** Every transaction in the ledger has passed the parser. */
export function parseRecorded(record: TransactionRecord): ParsedTransaction {
  const parsed = parseTransaction(record.wire)
  assert(parsed.ok, 'a transaction in the ledger cannot be parsed')
  return parsed.transaction
}

/** Every address of a transaction, including those loaded from lookup tables. */
export function keysOf({ staticKeys }: ParsedTransaction, { loadedAddresses }: TransactionMeta): ReadonlySet<string> {
  return new Set([...staticKeys.map(encodeBase58), ...loadedAddresses.writable, ...loadedAddresses.readonly])
}

/** Values that filters match on, computed on first access. */
export type TransactionFacts = { readonly isVote: boolean; readonly keys: ReadonlySet<string> }

export function factsOf(record: TransactionRecord): TransactionFacts {
  let parsed: ParsedTransaction | undefined
  let keys: ReadonlySet<string> | undefined
  return {
    get isVote() {
      return isSimpleVote((parsed ??= parseRecorded(record)))
    },
    get keys() {
      return (keys ??= keysOf((parsed ??= parseRecorded(record)), record.meta))
    },
  }
}
