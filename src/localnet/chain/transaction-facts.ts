import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { type ParsedTransaction, parseTransaction } from '../../solana/transaction/transaction.ts'
import { VOTE_PROGRAM } from './addresses.ts'
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

const VOTE_PROGRAM_BYTES = Buffer.from(decodeBase58(VOTE_PROGRAM))

/** Agave's rule: a legacy transaction with one instruction, of the vote program, and at most two signatures. */
export function isSimpleVote({ version, instructions, signatures, staticKeys }: ParsedTransaction): boolean {
  const [instruction] = instructions
  if (version !== 'legacy' || !instruction || instructions.length !== 1 || signatures.length > 2) return false
  const programId = staticKeys[instruction.programIdIndex]
  return programId !== undefined && VOTE_PROGRAM_BYTES.compare(programId) === 0
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
