import {
  type ChainBlock,
  type ChainInstruction,
  type ChainTransaction,
  isSimpleVote,
  isWritableKey,
  leaderOf,
} from '../../solana/chain-block.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import type { GeyserAccount } from '../../solana/geyser/block.ts'
import type { BatchRows } from './batch-rows.ts'
import { createTransferReader } from './token-transfers.ts'

export type RowOptions = {
  /** Votes are about 60 % of the rows and of little use in SQL; the blocks table counts them either way. */
  readonly includeVotes: boolean
  readonly includeLogs: boolean
}

export type BlockOrigin = {
  readonly commitment: 'confirmed' | 'finalized'
  readonly source: 'stream' | 'backfill'
}

/** What is left of a block when its transactions have become rows. */
export type BlockHead = Omit<ChainBlock, 'transactions'> & { readonly transactions: number; readonly votes: number }

/** Adds the rows of a block's transactions and rewards. What its own row needs besides is given back, since how final it is shows later. */
export function addTransactionRows(rows: BatchRows, block: ChainBlock, options: RowOptions): BlockHead {
  const { texts, tables } = rows
  const time = block.blockTime ?? 0
  let votes = 0
  for (const transaction of block.transactions) {
    const isVote = isSimpleVote(transaction)
    if (isVote) votes++
    if (!isVote || options.includeVotes) addTransaction(rows, { slot: block.slot, time }, transaction, isVote, options)
  }
  for (const { pubkey, rewardType, lamports, postBalance, commission } of block.rewards) {
    const [who, why] = [texts.numberOf(pubkey), texts.numberOf(rewardType)]
    tables.rewards.add(block.slot, time, who, why, lamports, postBalance, commission ?? -1)
  }
  return { ...block, transactions: block.transactions.length, votes }
}

export function addBlockRow({ texts, tables }: BatchRows, head: BlockHead, origin: BlockOrigin): void {
  tables.blocks.add(
    head.slot,
    head.blockTime ?? 0,
    head.blockHeight ?? 0,
    texts.add(head.blockhash),
    head.parentSlot,
    texts.add(head.parentBlockhash),
    texts.numberOf(leaderOf(head)),
    head.transactions,
    head.votes,
    texts.numberOf(origin.commitment),
    texts.numberOf(origin.source),
  )
}

export function addAccountRow({ texts, tables }: BatchRows, key: string, slot: number, account: GeyserAccount): void {
  const { owner, writeVersion, lamports, executable, rentEpoch, data, txnSignature } = account
  tables.accounts.add(
    texts.add(key),
    texts.numberOf(encodeBase58(owner)),
    slot,
    writeVersion,
    lamports,
    executable,
    rentEpoch,
    texts.add(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64')),
    texts.add(txnSignature === undefined ? '' : encodeBase58(txnSignature)),
  )
}

/** Where a transaction stands: what most of its rows begin with. */
type Position = { readonly slot: number; readonly time: number }

function addTransaction(
  rows: BatchRows,
  { slot, time }: Position,
  transaction: ChainTransaction,
  isVote: boolean,
  options: RowOptions,
): void {
  const { texts, tables } = rows
  const { index, accountKeys, header } = transaction
  const signature = texts.add(transaction.signature)
  const none = texts.numberOf('')
  const keys = accountKeys.map((key) => texts.numberOf(key))
  const feePayer = keys[0] ?? none
  const success = transaction.error === undefined
  const programs: number[] = []
  const readTransfer = createTransferReader(transaction)

  const addInstruction = (each: ChainInstruction, at: number, innerAt: number, outerProgram: number): void => {
    const program = keys[each.programIdIndex] ?? none
    if (!programs.includes(program)) programs.push(program)
    const accounts: number[] = []
    for (const position of each.accounts) accounts.push(keys[position] ?? none)
    tables.instructions.add(
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
      texts.add(encodeBase58(each.data)),
      firstEight(each.data),
      success,
      feePayer,
    )
    const moved = success ? readTransfer(each) : undefined
    if (moved === undefined) return
    tables.token_transfers.add(
      slot,
      time,
      index,
      signature,
      at,
      innerAt,
      texts.numberOf(moved.kind),
      texts.numberOf(moved.tokenProgram),
      texts.numberOf(moved.mint),
      texts.numberOf(moved.from),
      texts.numberOf(moved.to),
      texts.numberOf(moved.fromOwner),
      texts.numberOf(moved.toOwner),
      moved.amount,
      moved.decimals,
    )
  }

  transaction.instructions.forEach((outer, at) => {
    const program = keys[outer.programIdIndex] ?? none
    addInstruction(outer, at, -1, program)
    const calls = transaction.innerInstructions.find((group) => group.index === at)?.instructions
    calls?.forEach((call, innerAt) => addInstruction(call, at, innerAt, program))
  })

  tables.transactions.add(
    slot,
    time,
    index,
    signature,
    feePayer,
    keys.slice(0, header.numRequiredSignatures),
    isVote,
    success,
    transaction.error === undefined ? none : texts.numberOf(errorText(transaction.error)),
    transaction.fee,
    transaction.computeUnits,
    transaction.costUnits,
    texts.numberOf(transaction.version),
    texts.numberOf(transaction.recentBlockhash),
    keys,
    programs,
    options.includeLogs ? transaction.logMessages.map((line) => texts.numberOf(line)) : [],
  )
  addActivity(rows, { slot, time }, transaction, { signature, keys })
}

/** Who signed or whose balance moved. */
function addActivity(
  { texts, tables }: BatchRows,
  { slot, time }: Position,
  transaction: ChainTransaction,
  { signature, keys }: { readonly signature: number; readonly keys: readonly number[] },
): void {
  const { index, header, preBalances, postBalances, preTokenBalances, postTokenBalances } = transaction
  const none = texts.numberOf('')
  const add = (position: number, mint: number, pre: bigint, post: bigint): void => {
    const signed = position < header.numRequiredSignatures
    const writable = isWritableKey(transaction, position)
    const account = keys[position] ?? none
    tables.account_activity.add(slot, time, index, signature, account, mint, pre, post, signed, writable)
  }
  for (let position = 0; position < keys.length; position++) {
    const pre = preBalances[position] ?? 0n
    const post = postBalances[position] ?? 0n
    if (pre !== post || position < header.numRequiredSignatures) add(position, none, pre, post)
  }
  if (preTokenBalances.length + postTokenBalances.length === 0) return
  const before = new Map(preTokenBalances.map((each) => [each.accountIndex, each]))
  const after = new Map(postTokenBalances.map((each) => [each.accountIndex, each]))
  for (const location of [...new Set([...before.keys(), ...after.keys()])].toSorted((a, b) => a - b)) {
    const pre = before.get(location)?.amount ?? 0n
    const post = after.get(location)?.amount ?? 0n
    if (pre !== post)
      add(location, texts.numberOf((after.get(location) ?? before.get(location))?.mint ?? ''), pre, post)
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
