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
  /** Votes are about 60 % of the rows and rarely queried; the blocks table counts them either way. */
  readonly includeVotes: boolean
  readonly includeLogs: boolean
}

export type BlockOrigin = {
  readonly commitment: 'confirmed' | 'finalized'
  readonly source: 'stream' | 'backfill'
}

/** A block without its transactions, which are in the rows. */
export type BlockHead = Omit<ChainBlock, 'transactions'> & { readonly transactions: number; readonly votes: number }

/** Adds the rows of a block's transactions and rewards. Returns what the block's own row needs, which is added later with the commitment. */
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
    const [recipient, type] = [texts.intern(pubkey), texts.intern(rewardType)]
    tables.rewards.add(block.slot, time, recipient, type, lamports, postBalance, commission ?? -1)
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
    texts.intern(leaderOf(head)),
    head.transactions,
    head.votes,
    texts.intern(origin.commitment),
    texts.intern(origin.source),
  )
}

function addAccountRow({ texts, tables }: BatchRows, key: string, slot: number, account: GeyserAccount): void {
  const { owner, writeVersion, lamports, executable, rentEpoch, data, txnSignature } = account
  tables.accounts.add(
    texts.add(key),
    texts.intern(encodeBase58(owner)),
    slot,
    writeVersion,
    lamports,
    executable,
    rentEpoch,
    texts.add(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64')),
    texts.add(txnSignature === undefined ? '' : encodeBase58(txnSignature)),
  )
}

/**
 * Adds the last state of each account in these blocks to `rows`, and to `overwritten` the states that a later block replaces: where that block is above
 * `finalizedSlot`, it may be replaced itself.
 */
export function addAccountRows(
  { rows, overwritten }: { readonly rows: BatchRows; readonly overwritten: BatchRows },
  blocks: Iterable<{ readonly slot: number; readonly accounts: ReadonlyMap<string, GeyserAccount> }>,
  finalizedSlot: number,
): void {
  const last = new Map<string, { readonly slot: number; readonly account: GeyserAccount }>()
  for (const { slot, accounts } of blocks) {
    for (const [key, account] of accounts) {
      const before = last.get(key)
      if (before !== undefined && slot > finalizedSlot) addAccountRow(overwritten, key, before.slot, before.account)
      last.set(key, { slot, account })
    }
  }
  for (const [key, { slot, account }] of last) addAccountRow(rows, key, slot, account)
}

/** The block of a transaction: the first values of most rows. */
type BlockColumns = { readonly slot: number; readonly time: number }

function addTransaction(
  rows: BatchRows,
  { slot, time }: BlockColumns,
  transaction: ChainTransaction,
  isVote: boolean,
  options: RowOptions,
): void {
  const { texts, tables } = rows
  const { index, accountKeys, header } = transaction
  const signature = texts.add(transaction.signature)
  const none = texts.intern('')
  const keys = accountKeys.map((key) => texts.intern(key))
  const feePayer = keys[0] ?? none
  const success = transaction.error === undefined
  const programs: number[] = []
  const readTransfer = createTransferReader(transaction)

  const addInstruction = (each: ChainInstruction, at: number, innerAt: number, outerProgram: number): void => {
    const program = keys[each.programIdIndex] ?? none
    if (!programs.includes(program)) programs.push(program)
    const accounts: number[] = []
    for (const keyIndex of each.accounts) accounts.push(keys[keyIndex] ?? none)
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
      texts.intern(moved.kind),
      texts.intern(moved.tokenProgram),
      texts.intern(moved.mint),
      texts.intern(moved.from),
      texts.intern(moved.to),
      texts.intern(moved.fromOwner),
      texts.intern(moved.toOwner),
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
    transaction.error === undefined ? none : texts.intern(errorText(transaction.error)),
    transaction.fee,
    transaction.computeUnits,
    transaction.costUnits,
    texts.intern(transaction.version),
    texts.intern(transaction.recentBlockhash),
    keys,
    programs,
    options.includeLogs ? transaction.logMessages.map((line) => texts.intern(line)) : [],
  )
  addActivity(rows, { slot, time }, transaction, { signature, keys })
}

/** Adds a row for each account that signed or whose balance changed. */
function addActivity(
  { texts, tables }: BatchRows,
  { slot, time }: BlockColumns,
  transaction: ChainTransaction,
  { signature, keys }: { readonly signature: number; readonly keys: readonly number[] },
): void {
  const { index, header, preBalances, postBalances, preTokenBalances, postTokenBalances } = transaction
  const none = texts.intern('')
  const add = (keyIndex: number, mint: number, pre: bigint, post: bigint): void => {
    const signed = keyIndex < header.numRequiredSignatures
    const writable = isWritableKey(transaction, keyIndex)
    const account = keys[keyIndex] ?? none
    tables.account_activity.add(slot, time, index, signature, account, mint, pre, post, signed, writable)
  }
  for (let keyIndex = 0; keyIndex < keys.length; keyIndex++) {
    const pre = preBalances[keyIndex] ?? 0n
    const post = postBalances[keyIndex] ?? 0n
    if (pre !== post || keyIndex < header.numRequiredSignatures) add(keyIndex, none, pre, post)
  }
  if (preTokenBalances.length + postTokenBalances.length === 0) return
  const before = new Map(preTokenBalances.map((each) => [each.accountIndex, each]))
  const after = new Map(postTokenBalances.map((each) => [each.accountIndex, each]))
  for (const keyIndex of [...new Set([...before.keys(), ...after.keys()])].toSorted((a, b) => a - b)) {
    const pre = before.get(keyIndex)?.amount ?? 0n
    const post = after.get(keyIndex)?.amount ?? 0n
    if (pre !== post) add(keyIndex, texts.intern((after.get(keyIndex) ?? before.get(keyIndex))?.mint ?? ''), pre, post)
  }
}

/** The error as getTransaction returns it; numbers in it may be bigints here. */
function errorText(error: unknown): string {
  return typeof error === 'string'
    ? error
    : JSON.stringify(error, (_name, value: unknown) => (typeof value === 'bigint' ? Number(value) : value))
}

function firstEight(data: Uint8Array): bigint {
  if (data.length < 8) return 0n
  return Buffer.from(data.buffer, data.byteOffset, 8).readBigUInt64LE(0)
}
