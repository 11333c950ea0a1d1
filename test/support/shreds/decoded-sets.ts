import assert from 'node:assert/strict'
import type { DecodedDataSet, DecodedTransaction } from '../../../src/shreds/decoded/source.ts'
import { parseTransaction } from '../../../src/solana/transaction/transaction.ts'
import { FORMAT_LIMITS } from '../../../src/solana/transaction/types.ts'

/** A copy that stays valid after `onDataSet` has returned. */
export function copyDataSet(set: DecodedDataSet): DecodedDataSet {
  const entries = set.entries && Uint8Array.from(set.entries)
  return { ...set, entries, transactions: set.transactions.map(copyTransaction) }
}

function copyTransaction(transaction: DecodedTransaction): DecodedTransaction {
  const { isVote, hasUnknownTable } = transaction
  const wire = transaction.wire && Uint8Array.from(transaction.wire)
  const copied = {
    ...{ wire, isVote, hasUnknownTable },
    loadedWritable: transaction.loadedWritable.map((address) => Uint8Array.from(address)),
    loadedReadonly: transaction.loadedReadonly.map((address) => Uint8Array.from(address)),
  }
  if (wire === undefined) return { ...copied, parsed: structuredClone(transaction.parsed) }
  const parse = parseTransaction(wire, FORMAT_LIMITS)
  assert.ok(parse.ok, parse.ok ? '' : parse.reason)
  return { ...copied, parsed: parse.transaction }
}
