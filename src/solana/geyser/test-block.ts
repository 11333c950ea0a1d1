import type { ChainBlock, ChainTokenBalance, ChainTransaction } from '../chain-block.ts'
import { decodeBase58 } from '../crypto/base58.ts'
import { SubscribeUpdateSchema } from '../gen/geyser_pb.ts'
import { RewardType } from '../gen/solana-storage_pb.ts'
import { encodeTransactionError } from '../transaction/error.ts'
import { encodeMessage } from './protobuf.ts'

/** For tests and benchmarks: a block encoded as in a geyser stream, with the id of its bank where the node names banks. */
export function geyserBytesOf(block: ChainBlock, bankId?: bigint): Uint8Array {
  return encodeMessage(SubscribeUpdateSchema, {
    filters: ['blocks'],
    updateOneof: {
      case: 'block',
      value: {
        slot: BigInt(block.slot),
        blockhash: block.blockhash,
        parentSlot: BigInt(block.parentSlot),
        parentBlockhash: block.parentBlockhash,
        ...(block.blockTime === undefined ? {} : { blockTime: { timestamp: BigInt(block.blockTime) } }),
        ...(block.blockHeight === undefined ? {} : { blockHeight: { blockHeight: BigInt(block.blockHeight) } }),
        ...(bankId === undefined ? {} : { bankId }),
        executedTransactionCount: BigInt(block.transactions.length),
        transactions: block.transactions.map(transactionInfo),
        rewards: {
          rewards: block.rewards.map(({ pubkey, lamports, postBalance, rewardType, commission }) => ({
            pubkey,
            lamports,
            postBalance,
            rewardType: RewardType[rewardType as 'Fee'],
            commission: commission === undefined ? '' : String(commission),
          })),
        },
      },
    },
  })
}

function transactionInfo(transaction: ChainTransaction) {
  const { accountKeys, staticKeyCount, loadedWritableCount, header, error } = transaction
  const keys = accountKeys.map((key) => decodeBase58(key))
  const loadedFrom = staticKeyCount + loadedWritableCount
  return {
    signature: decodeBase58(transaction.signature),
    index: BigInt(transaction.index),
    transaction: {
      signatures: [decodeBase58(transaction.signature)],
      message: {
        header: {
          numRequiredSignatures: header.numRequiredSignatures,
          numReadonlySignedAccounts: header.numReadonlySigned,
          numReadonlyUnsignedAccounts: header.numReadonlyUnsigned,
        },
        accountKeys: keys.slice(0, staticKeyCount),
        recentBlockhash: decodeBase58(transaction.recentBlockhash),
        instructions: transaction.instructions.map(({ programIdIndex, accounts, data }) => ({
          programIdIndex,
          accounts,
          data,
        })),
        versioned: transaction.version !== 'legacy',
        ...(transaction.version === '1' ? { config: {} } : {}),
      },
    },
    meta: {
      ...(error === undefined ? {} : { err: { err: encodeTransactionError(error) ?? new Uint8Array() } }),
      fee: transaction.fee,
      preBalances: [...transaction.preBalances],
      postBalances: [...transaction.postBalances],
      innerInstructions: transaction.innerInstructions.map(({ index, instructions }) => ({
        index,
        instructions: instructions.map((each) => ({ ...each })),
      })),
      logMessages: [...transaction.logMessages],
      preTokenBalances: transaction.preTokenBalances.map(tokenBalance),
      postTokenBalances: transaction.postTokenBalances.map(tokenBalance),
      loadedWritableAddresses: keys.slice(staticKeyCount, loadedFrom),
      loadedReadonlyAddresses: keys.slice(loadedFrom),
      computeUnitsConsumed: transaction.computeUnits,
      costUnits: transaction.costUnits,
    },
  }
}

function tokenBalance({ accountIndex, mint, owner, programId, amount, decimals }: ChainTokenBalance) {
  return { accountIndex, mint, owner, programId, uiTokenAmount: { amount: String(amount), decimals } }
}
