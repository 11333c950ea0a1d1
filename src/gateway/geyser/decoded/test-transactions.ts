import type { ParsedTransaction } from '../../../solana/transaction/types.ts'
import type { DecodedTransaction } from './source.ts'

/** For tests: 32 bytes that are different for each number. */
export function accountOf(number: number): Uint8Array {
  const account = new Uint8Array(32).fill(7)
  new DataView(account.buffer).setUint32(0, number)
  return account
}

/** For tests: its loaded addresses stand one after the other, and there is no array of them. */
export function withRange(transaction: DecodedTransaction): DecodedTransaction {
  const { loadedWritable, loadedReadonly } = transaction
  const bytes = Uint8Array.from([9, 9, 9, ...[...loadedWritable, ...loadedReadonly].flatMap((key) => [...key])])
  const counts = { writable: loadedWritable.length, readonly: loadedReadonly.length }
  return { ...transaction, loadedWritable: [], loadedReadonly: [], loaded: { bytes, at: 3, ...counts } }
}

/** For tests: a decoded transaction with these accounts. */
export function decodedTransaction(
  number: number,
  accounts: {
    readonly fixed: readonly number[]
    readonly writable?: readonly number[]
    readonly readonly?: readonly number[]
  },
  flags: { readonly isVote?: boolean; readonly hasUnknownTable?: boolean } = {},
): DecodedTransaction {
  const parsed: ParsedTransaction = {
    version: 'legacy',
    signatures: [new Uint8Array(64).fill(number)],
    message: new Uint8Array(0),
    header: { numRequiredSignatures: 1, numReadonlySigned: 0, numReadonlyUnsigned: 0 },
    staticKeys: accounts.fixed.map(accountOf),
    recentBlockhash: new Uint8Array(32).fill(9),
    instructions: [{ programIdIndex: 0, accounts: Uint8Array.of(0), data: Uint8Array.of(1, 2, 3) }],
    addressTableLookups: [],
    config: null,
    wireLength: 0,
  }
  return {
    parsed,
    isVote: flags.isVote ?? false,
    loadedWritable: (accounts.writable ?? []).map(accountOf),
    loadedReadonly: (accounts.readonly ?? []).map(accountOf),
    hasUnknownTable: flags.hasUnknownTable ?? false,
  }
}
