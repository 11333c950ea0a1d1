import type { ParsedTransaction } from '../../solana/transaction/types.ts'
import type { SimulateReply } from '../engine/protocol.ts'
import { textKey, toAccount, toMeta } from '../engine/values.ts'
import type { Account, Simulation, TransactionError } from './model.ts'

/** The engine's reply as the result of a simulation. */
export function toSimulation(
  { meta, postAccounts: posts, loadedAccountsDataSize }: SimulateReply,
  transaction: ParsedTransaction,
  replacementBlockhash: Simulation['replacementBlockhash'],
): Simulation {
  const keys = [...transaction.staticKeys, ...meta.loadedWritable, ...meta.loadedReadonly]
  const postAccounts = new Map<string, Account>()
  posts.forEach((account, index) => {
    postAccounts.set(textKey(keys[index] as Uint8Array), toAccount(account))
  })
  return { err: meta.err, meta: toMeta(meta), postAccounts, loadedAccountsDataSize, replacementBlockhash }
}

/** The result for a transaction that was refused before it reached the engine. */
export function failedSimulation(
  err: TransactionError,
  replacementBlockhash: Simulation['replacementBlockhash'],
): Simulation {
  const meta = {
    err,
    fee: 0n,
    preBalances: [],
    postBalances: [],
    preTokenBalances: [],
    postTokenBalances: [],
    innerInstructions: [],
    logMessages: [],
    loadedAddresses: { writable: [], readonly: [] },
    computeUnitsConsumed: 0n,
    returnData: null,
  }
  return { err, meta, postAccounts: new Map(), loadedAccountsDataSize: 0, replacementBlockhash }
}
