import type { ChainBlock, ChainInstruction, ChainTokenBalance, ChainTransaction } from '../chain-block.ts'
import { encodeBase58 } from '../crypto/base58.ts'

/** For tests: the result of getBlock for a block, as GET_BLOCK_CONFIG requests it. Its amounts must be below 2^53. */
export function blockJsonOf(block: ChainBlock): object {
  return {
    blockhash: block.blockhash,
    previousBlockhash: block.parentBlockhash,
    parentSlot: block.parentSlot,
    blockTime: block.blockTime ?? null,
    blockHeight: block.blockHeight ?? null,
    transactions: block.transactions.map(transactionJson),
    rewards: block.rewards.map(({ pubkey, lamports, postBalance, rewardType, commission }) => ({
      ...{ pubkey, rewardType, commission: commission ?? null },
      lamports: Number(lamports),
      postBalance: Number(postBalance),
    })),
  }
}

function transactionJson(transaction: ChainTransaction): object {
  const { accountKeys, staticKeyCount, loadedWritableCount, header, version } = transaction
  const loadedFrom = staticKeyCount + loadedWritableCount
  return {
    version: version === 'legacy' ? version : Number(version),
    transaction: {
      signatures: [transaction.signature],
      message: {
        header: {
          numRequiredSignatures: header.numRequiredSignatures,
          numReadonlySignedAccounts: header.numReadonlySigned,
          numReadonlyUnsignedAccounts: header.numReadonlyUnsigned,
        },
        accountKeys: accountKeys.slice(0, staticKeyCount),
        recentBlockhash: transaction.recentBlockhash,
        instructions: transaction.instructions.map(instructionJson),
      },
    },
    meta: {
      err: transaction.error ?? null,
      fee: Number(transaction.fee),
      computeUnitsConsumed: Number(transaction.computeUnits),
      costUnits: Number(transaction.costUnits),
      preBalances: transaction.preBalances.map(Number),
      postBalances: transaction.postBalances.map(Number),
      preTokenBalances: transaction.preTokenBalances.map(tokenBalanceJson),
      postTokenBalances: transaction.postTokenBalances.map(tokenBalanceJson),
      innerInstructions: transaction.innerInstructions.map(({ index, instructions }) => ({
        index,
        instructions: instructions.map(instructionJson),
      })),
      logMessages: transaction.logMessages,
      loadedAddresses: {
        writable: accountKeys.slice(staticKeyCount, loadedFrom),
        readonly: accountKeys.slice(loadedFrom),
      },
    },
  }
}

function instructionJson({ programIdIndex, accounts, data, stackHeight }: ChainInstruction): object {
  return { programIdIndex, accounts: [...accounts], data: encodeBase58(data), stackHeight }
}

function tokenBalanceJson({ accountIndex, mint, owner, programId, amount, decimals }: ChainTokenBalance): object {
  return { accountIndex, mint, owner, programId, uiTokenAmount: { amount: String(amount), decimals } }
}
