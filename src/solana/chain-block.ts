import type { TransactionErrorJson } from './transaction/error.ts'

/** The data of the node is not a block; the message names the missing or invalid part. */
export class BlockFault extends Error {
  override readonly name = 'BlockFault'
}

/** A block with its transactions, in the same form for a geyser stream and for getBlock. */
export type ChainBlock = {
  readonly slot: number
  readonly blockhash: string
  readonly parentSlot: number
  readonly parentBlockhash: string
  /** Unix seconds. */
  readonly blockTime: number | undefined
  readonly blockHeight: number | undefined
  readonly transactions: readonly ChainTransaction[]
  readonly rewards: readonly ChainReward[]
}

export type ChainTransaction = {
  /** Its index in the block. */
  readonly index: number
  readonly signature: string
  readonly version: 'legacy' | '0' | '1'
  readonly header: {
    readonly numRequiredSignatures: number
    readonly numReadonlySigned: number
    readonly numReadonlyUnsigned: number
  }
  /** Static keys, then those loaded for writing, then those loaded for reading. */
  readonly accountKeys: readonly string[]
  readonly staticKeyCount: number
  readonly loadedWritableCount: number
  readonly recentBlockhash: string
  readonly instructions: readonly ChainInstruction[]
  readonly innerInstructions: readonly { readonly index: number; readonly instructions: readonly ChainInstruction[] }[]
  readonly error: TransactionErrorJson | undefined
  readonly fee: bigint
  readonly computeUnits: bigint
  readonly costUnits: bigint
  readonly preBalances: readonly bigint[]
  readonly postBalances: readonly bigint[]
  readonly preTokenBalances: readonly ChainTokenBalance[]
  readonly postTokenBalances: readonly ChainTokenBalance[]
  readonly logMessages: readonly string[]
}

export type ChainInstruction = {
  readonly programIdIndex: number
  /** Indexes into the keys of the transaction. */
  readonly accounts: Uint8Array
  readonly data: Uint8Array
  /** 1 for an instruction of the transaction itself. */
  readonly stackHeight: number
}

export type ChainTokenBalance = {
  readonly accountIndex: number
  readonly mint: string
  readonly owner: string
  readonly programId: string
  readonly amount: bigint
  readonly decimals: number
}

export type ChainReward = {
  readonly pubkey: string
  readonly lamports: bigint
  readonly postBalance: bigint
  readonly rewardType: string
  /** Percent; undefined where none applies. */
  readonly commission: number | undefined
}

export const VOTE_PROGRAM = 'Vote111111111111111111111111111111111111111'

/** The runtime's own rule for a simple vote: a legacy transaction of one instruction, for the vote program, with at most two signatures. */
export function isSimpleVote(transaction: ChainTransaction): boolean {
  const { version, header, instructions, accountKeys } = transaction
  const only = instructions.length === 1 ? instructions[0] : undefined
  return (
    version === 'legacy' &&
    header.numRequiredSignatures <= 2 &&
    only !== undefined &&
    accountKeys[only.programIdIndex] === VOTE_PROGRAM
  )
}

/** Whether the message asks for this key to be writable. */
export function isWritableKey(transaction: ChainTransaction, index: number): boolean {
  const { header, staticKeyCount, loadedWritableCount } = transaction
  if (index >= staticKeyCount) return index < staticKeyCount + loadedWritableCount
  return index < header.numRequiredSignatures
    ? index < header.numRequiredSignatures - header.numReadonlySigned
    : index < staticKeyCount - header.numReadonlyUnsigned
}

/** The leader of the block, which is the receiver of its fee reward; empty when the block has no fee reward. */
export function leaderOf(block: Pick<ChainBlock, 'rewards'>): string {
  return block.rewards.find(({ rewardType }) => rewardType === 'Fee')?.pubkey ?? ''
}
