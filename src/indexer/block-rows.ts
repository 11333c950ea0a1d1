import { encodeBase58 } from '../solana/base58.ts'
import {
  type ChainBlock,
  type ChainInstruction,
  type ChainTransaction,
  isSimpleVote,
  isWritableKey,
  leaderOf,
} from '../solana/chain-block.ts'
import type { TableName } from './schema.ts'
import { createTransferReader } from './token-transfers.ts'

/** A value of a row; which kind a column takes stands in the schema. */
export type Value = string | number | bigint | boolean | readonly string[]
/** Values in the order of the table's columns. */
export type Row = readonly Value[]
export type Rows = Readonly<Record<TableName, Row[]>>

export type RowOptions = {
  /** Votes are about 60 % of the rows and of little use in SQL; the blocks table counts them either way. */
  readonly includeVotes: boolean
  readonly includeLogs: boolean
}

export type BlockOrigin = {
  readonly commitment: 'confirmed' | 'finalized'
  readonly source: 'stream' | 'backfill'
}

export function emptyRows(): Rows {
  return {
    blocks: [],
    transactions: [],
    instructions: [],
    token_transfers: [],
    account_activity: [],
    accounts: [],
    rewards: [],
  }
}

/** Adds what a block means for every table but `accounts`, which is told by another part of the stream. */
export function addBlockRows(rows: Rows, block: ChainBlock, origin: BlockOrigin, options: RowOptions): void {
  const time = block.blockTime ?? 0
  let votes = 0
  for (const transaction of block.transactions) {
    const isVote = isSimpleVote(transaction)
    if (isVote) votes++
    if (!isVote || options.includeVotes) addTransaction(rows, block.slot, time, transaction, isVote, options)
  }
  rows.blocks.push([
    block.slot,
    time,
    block.blockHeight ?? 0,
    block.blockhash,
    block.parentSlot,
    block.parentBlockhash,
    leaderOf(block),
    block.transactions.length,
    votes,
    origin.commitment,
    origin.source,
  ])
  for (const { pubkey, rewardType, lamports, postBalance, commission } of block.rewards) {
    rows.rewards.push([block.slot, time, pubkey, rewardType, lamports, postBalance, commission ?? -1])
  }
}

function addTransaction(
  rows: Rows,
  slot: number,
  time: number,
  transaction: ChainTransaction,
  isVote: boolean,
  options: RowOptions,
): void {
  const { index, signature, accountKeys, header } = transaction
  const feePayer = accountKeys[0] ?? ''
  const success = transaction.error === undefined
  const programs = new Set<string>()
  const readTransfer = createTransferReader(transaction)
  const inner = new Map(transaction.innerInstructions.map((group) => [group.index, group.instructions]))

  const addInstruction = (each: ChainInstruction, at: number, innerAt: number, outerProgram: string): void => {
    const program = accountKeys[each.programIdIndex] ?? ''
    programs.add(program)
    const accounts = Array.from(each.accounts, (place) => accountKeys[place] ?? '')
    rows.instructions.push([
      slot,
      time,
      index,
      signature,
      at,
      innerAt,
      each.stackHeight,
      program,
      outerProgram,
      accounts,
      encodeBase58(each.data),
      firstEight(each.data),
      success,
      feePayer,
    ])
    const moved = success ? readTransfer(each) : undefined
    if (moved === undefined) return
    const { kind, tokenProgram, mint, from, to, fromOwner, toOwner, amount, decimals } = moved
    const where = [slot, time, index, signature, at, innerAt]
    rows.token_transfers.push([...where, kind, tokenProgram, mint, from, to, fromOwner, toOwner, amount, decimals])
  }

  transaction.instructions.forEach((outer, at) => {
    const program = accountKeys[outer.programIdIndex] ?? ''
    addInstruction(outer, at, -1, program)
    inner.get(at)?.forEach((call, innerAt) => addInstruction(call, at, innerAt, program))
  })

  rows.transactions.push([
    slot,
    time,
    index,
    signature,
    feePayer,
    accountKeys.slice(0, header.numRequiredSignatures),
    isVote,
    success,
    transaction.error === undefined ? '' : errorText(transaction.error),
    transaction.fee,
    transaction.computeUnits,
    transaction.costUnits,
    transaction.version,
    transaction.recentBlockhash,
    accountKeys,
    [...programs],
    options.includeLogs ? transaction.logMessages : [],
  ])
  addActivity(rows, slot, time, transaction)
}

/** Who signed or whose balance moved. */
function addActivity(rows: Rows, slot: number, time: number, transaction: ChainTransaction): void {
  const { index, signature, accountKeys, header, preBalances, postBalances } = transaction
  const add = (place: number, mint: string, pre: bigint, post: bigint): void => {
    const signed = place < header.numRequiredSignatures
    const writable = isWritableKey(transaction, place)
    rows.account_activity.push([
      slot,
      time,
      index,
      signature,
      accountKeys[place] ?? '',
      mint,
      pre,
      post,
      signed,
      writable,
    ])
  }
  for (let place = 0; place < accountKeys.length; place++) {
    const pre = preBalances[place] ?? 0n
    const post = postBalances[place] ?? 0n
    if (pre !== post || place < header.numRequiredSignatures) add(place, '', pre, post)
  }
  const before = new Map(transaction.preTokenBalances.map((each) => [each.accountIndex, each]))
  const after = new Map(transaction.postTokenBalances.map((each) => [each.accountIndex, each]))
  for (const place of [...new Set([...before.keys(), ...after.keys()])].toSorted((a, b) => a - b)) {
    const pre = before.get(place)?.amount ?? 0n
    const post = after.get(place)?.amount ?? 0n
    if (pre !== post) add(place, (after.get(place) ?? before.get(place))?.mint ?? '', pre, post)
  }
}

/** The error as getTransaction writes it; numbers in it may have come as bigints. */
function errorText(error: unknown): string {
  return typeof error === 'string'
    ? error
    : JSON.stringify(error, (_name, value: unknown) => (typeof value === 'bigint' ? Number(value) : value))
}

function firstEight(data: Uint8Array): bigint {
  if (data.length < 8) return 0n
  return Buffer.from(data.buffer, data.byteOffset, 8).readBigUInt64LE(0)
}
