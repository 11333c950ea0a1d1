import type { ChainTokenBalance } from '../../solana/chain-block.ts'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import type { Account, TransactionMeta } from '../chain/model.ts'
import type { EngineAccount, EngineMeta, EngineTokenBalance } from './protocol.ts'
import { RENT_EXEMPT_EPOCH } from './sysvars.ts'

/**
 * Converts the engine's values to those of `chain/model.ts`. Arrays from a message are views into it, so kept values are
 * copied: otherwise one small account would keep a complete batch in memory.
 */

export function toAccount({ lamports, owner, data, executable }: EngineAccount): Account {
  return { lamports, owner: textKey(owner), data: new Uint8Array(data), executable, rentEpoch: RENT_EXEMPT_EPOCH }
}

export function fromAccount({ lamports, owner, data, executable }: Account): EngineAccount {
  return { lamports, owner: decodeBase58(owner), data, executable }
}

export function toMeta(meta: EngineMeta): TransactionMeta {
  return {
    err: meta.err,
    fee: meta.fee,
    preBalances: meta.preBalances,
    postBalances: meta.postBalances,
    preTokenBalances: meta.preTokenBalances.map(toTokenBalance),
    postTokenBalances: meta.postTokenBalances.map(toTokenBalance),
    innerInstructions: meta.innerInstructions.map(({ index, instructions }) => ({
      index,
      instructions: instructions.map((inner) => ({
        ...inner,
        accounts: new Uint8Array(inner.accounts),
        data: new Uint8Array(inner.data),
      })),
    })),
    logMessages: meta.logMessages,
    loadedAddresses: { writable: meta.loadedWritable.map(textKey), readonly: meta.loadedReadonly.map(textKey) },
    computeUnitsConsumed: meta.computeUnitsConsumed,
    returnData: meta.returnData && {
      programId: textKey(meta.returnData.programId),
      data: new Uint8Array(meta.returnData.data),
    },
  }
}

function toTokenBalance(balance: EngineTokenBalance): ChainTokenBalance {
  return {
    accountIndex: balance.accountIndex,
    mint: textKey(balance.mint),
    owner: textKey(balance.owner),
    programId: textKey(balance.programId),
    amount: balance.amount,
    decimals: balance.decimals,
  }
}

export function textKey(bytes: Uint8Array): string {
  return encodeBase58(bytes)
}
