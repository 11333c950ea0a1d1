import { Buffer } from 'node:buffer'
import type { ChainTokenBalance } from '../../solana/chain-block.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import type { TransactionError, TransactionMeta } from '../chain/model.ts'
import type { Json } from './json.ts'
import { encodeParsedInstruction } from './parsed/instructions.ts'
import { encodeTokenAmount } from './parsed/token-amount.ts'

type Members = { readonly [member: string]: Json | undefined }

/** The meta of encodings json, base58, base64 and binary. */
export function encodeFullMeta(meta: TransactionMeta, showRewards: boolean): Members {
  return {
    ...encodeOutcome(meta),
    innerInstructions: encodeInner(meta),
    logMessages: meta.logMessages,
    ...encodeTokenBalancesOf(meta),
    rewards: showRewards ? [] : null,
    loadedAddresses: meta.loadedAddresses,
    returnData: encodeReturnData(meta.returnData) ?? undefined,
    computeUnitsConsumed: meta.computeUnitsConsumed,
  }
}

/** The meta of encoding jsonParsed: inner instructions are parsed, loaded addresses are in the list of keys instead. */
export function encodeParsedMeta(meta: TransactionMeta, keys: readonly string[], showRewards: boolean): Members {
  return {
    ...encodeOutcome(meta),
    innerInstructions: encodeParsedInner(meta, keys),
    logMessages: meta.logMessages,
    ...encodeTokenBalancesOf(meta),
    rewards: showRewards ? [] : null,
    returnData: encodeReturnData(meta.returnData) ?? undefined,
    computeUnitsConsumed: meta.computeUnitsConsumed,
  }
}

/** The meta of detail `accounts`. */
export function encodeSimpleMeta(meta: TransactionMeta, showRewards: boolean): Members {
  return { ...encodeOutcome(meta), ...encodeTokenBalancesOf(meta), rewards: showRewards ? [] : undefined }
}

function encodeOutcome(meta: TransactionMeta): Members {
  return {
    err: encodeError(meta.err),
    status: encodeStatus(meta.err),
    fee: meta.fee,
    preBalances: meta.preBalances,
    postBalances: meta.postBalances,
  }
}

function encodeTokenBalancesOf(meta: TransactionMeta): Members {
  return {
    preTokenBalances: meta.preTokenBalances.map(encodeTokenBalance),
    postTokenBalances: meta.postTokenBalances.map(encodeTokenBalance),
  }
}

export function encodeTokenBalance({
  accountIndex,
  mint,
  owner,
  programId,
  amount,
  decimals,
}: ChainTokenBalance): Json {
  return {
    accountIndex,
    mint,
    uiTokenAmount: encodeTokenAmount(amount, { decimals, unixTimestamp: 0 }),
    owner,
    programId,
  }
}

function encodeInner(meta: TransactionMeta): Json {
  return meta.innerInstructions.map(({ index, instructions }) => ({
    index,
    instructions: instructions.map(({ programIdIndex, accounts, data, stackHeight }) => ({
      programIdIndex,
      accounts: Array.from(accounts),
      data: encodeBase58(data),
      stackHeight,
    })),
  }))
}

export function encodeParsedInner(meta: TransactionMeta, keys: readonly string[]): Json {
  return meta.innerInstructions.map(({ index, instructions }) => ({
    index,
    instructions: instructions.map((each) => encodeParsedInstruction(each, keys, each.stackHeight)),
  }))
}

export function encodeReturnData(returnData: TransactionMeta['returnData']): Json {
  return (
    returnData && { programId: returnData.programId, data: [Buffer.from(returnData.data).toString('base64'), 'base64'] }
  )
}

/** Errors in `chain/model.ts` already have Solana's JSON form. */
export function encodeError(err: TransactionError | null): Json {
  return err as Json
}

export function encodeStatus(err: TransactionError | null): Json {
  return err === null ? { Ok: null } : { Err: encodeError(err) }
}
