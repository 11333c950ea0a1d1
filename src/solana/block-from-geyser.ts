import { encodeBase58 } from './base58.ts'
import type { ChainBlock, ChainInstruction, ChainReward, ChainTokenBalance, ChainTransaction } from './chain-block.ts'
import type { SubscribeUpdateBlock, SubscribeUpdateTransactionInfo } from './gen/geyser_pb.ts'
import {
  type CompiledInstruction,
  type InnerInstruction,
  type Reward,
  RewardType,
  type TokenBalance,
} from './gen/solana-storage_pb.ts'
import { decodeTransactionError, type TransactionErrorJson } from './transaction-error.ts'

/** What the node said cannot be a block: which part is missing. */
export class BlockFault extends Error {
  override readonly name = 'BlockFault'
}

/** A block update of a geyser stream. Throws BlockFault where a part is missing that every block has. */
export function blockFromGeyser(update: SubscribeUpdateBlock): ChainBlock {
  const keys = new KeyTexts()
  const transactions = update.transactions.map((info) => transactionOf(info, keys))
  transactions.sort((a, b) => a.index - b.index)
  return {
    slot: Number(update.slot),
    blockhash: update.blockhash,
    parentSlot: Number(update.parentSlot),
    parentBlockhash: update.parentBlockhash,
    blockTime: update.blockTime === undefined ? undefined : Number(update.blockTime.timestamp),
    blockHeight: update.blockHeight === undefined ? undefined : Number(update.blockHeight.blockHeight),
    transactions,
    rewards: (update.rewards?.rewards ?? []).map(rewardOf),
  }
}

function transactionOf(info: SubscribeUpdateTransactionInfo, keys: KeyTexts): ChainTransaction {
  const message = info.transaction?.message
  const header = message?.header
  const meta = info.meta
  if (message === undefined || header === undefined) throw new BlockFault(`transaction ${info.index} has no message`)
  if (meta === undefined) throw new BlockFault(`transaction ${info.index} has no result`)
  const loaded = [...meta.loadedWritableAddresses, ...meta.loadedReadonlyAddresses]
  return {
    index: Number(info.index),
    signature: encodeBase58(info.signature),
    version: !message.versioned ? 'legacy' : message.config === undefined ? '0' : '1',
    header: {
      numRequiredSignatures: header.numRequiredSignatures,
      numReadonlySigned: header.numReadonlySignedAccounts,
      numReadonlyUnsigned: header.numReadonlyUnsignedAccounts,
    },
    accountKeys: [...message.accountKeys, ...loaded].map((key) => keys.text(key)),
    staticKeyCount: message.accountKeys.length,
    loadedWritableCount: meta.loadedWritableAddresses.length,
    recentBlockhash: keys.text(message.recentBlockhash),
    instructions: message.instructions.map(instructionOf),
    innerInstructions: meta.innerInstructions.map(({ index, instructions }) => ({
      index,
      instructions: instructions.map(innerInstructionOf),
    })),
    error: meta.err === undefined ? undefined : errorOf(meta.err.err),
    fee: meta.fee,
    computeUnits: meta.computeUnitsConsumed ?? 0n,
    costUnits: meta.costUnits ?? 0n,
    preBalances: meta.preBalances,
    postBalances: meta.postBalances,
    preTokenBalances: meta.preTokenBalances.map(tokenBalanceOf),
    postTokenBalances: meta.postTokenBalances.map(tokenBalanceOf),
    logMessages: meta.logMessages,
  }
}

function instructionOf({ programIdIndex, accounts, data }: CompiledInstruction): ChainInstruction {
  return { programIdIndex, accounts, data, stackHeight: 1 }
}

function innerInstructionOf({ programIdIndex, accounts, data, stackHeight }: InnerInstruction): ChainInstruction {
  // Nodes before 1.14.6 told no height; an inner instruction is called by one of the transaction at least.
  return { programIdIndex, accounts, data, stackHeight: stackHeight ?? 2 }
}

/** An error of a newer node is kept by its number, so that a failed transaction never counts as a success. */
function errorOf(bincode: Uint8Array): TransactionErrorJson {
  return decodeTransactionError(bincode) ?? `Unknown(${Buffer.from(bincode).toString('hex')})`
}

function tokenBalanceOf(balance: TokenBalance): ChainTokenBalance {
  return {
    accountIndex: balance.accountIndex,
    mint: balance.mint,
    owner: balance.owner,
    programId: balance.programId,
    amount: BigInt(balance.uiTokenAmount?.amount || '0'),
    decimals: balance.uiTokenAmount?.decimals ?? 0,
  }
}

const REWARD_NAMES = new Map<number, string>(
  Object.entries(RewardType)
    .filter(([, number]) => number !== RewardType.Unspecified)
    .map(([name, number]) => [number, name]),
)

function rewardOf({ pubkey, lamports, postBalance, rewardType, commission }: Reward): ChainReward {
  return {
    pubkey,
    lamports,
    postBalance,
    rewardType: REWARD_NAMES.get(rewardType) ?? '',
    commission: commission === '' ? undefined : Number(commission),
  }
}

/** The keys of a block repeat: most transactions name the same programs and a few hot accounts. */
class KeyTexts {
  readonly #known = new Map<string, string>()

  text(key: Uint8Array): string {
    const raw = Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1')
    let text = this.#known.get(raw)
    if (text === undefined) {
      text = encodeBase58(key)
      this.#known.set(raw, text)
    }
    return text
  }
}
