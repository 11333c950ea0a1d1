import type { AccountWrite, BankId, Block } from '../chain/model.ts'
import { AccountUpdate } from './account-update.ts'
import { BlockMetaUpdate, BlockUpdate } from './block-update.ts'
import { EntryUpdate } from './entry-update.ts'
import { FooterUpdate } from './footer-update.ts'
import { encodeCreatedAt } from './scratch.ts'
import { TransactionUpdate } from './transaction-update.ts'
import type { Update } from './updates.ts'

/** All updates of one block, in the order they are sent. */
export type SlotContent = {
  /** For processed streams: every write of every account. */
  readonly live: readonly Update[]
  /** For confirmed and finalized streams: only the last write of each account. */
  readonly settled: readonly Update[]
  /** The block, its meta and its footer, which follow the content. */
  readonly summary: readonly Update[]
}

/**
 * For each transaction the accounts it wrote, then the transaction; then the entries. System writes are ordered by
 * write_version: before the first transaction or after the last.
 */
export function createSlotContent(block: Block, createdAtMs: number, bankId?: BankId): SlotContent {
  const createdAt = encodeCreatedAt(createdAtMs)
  const live: Update[] = []
  const accounts: AccountUpdate[] = []
  const transactions: TransactionUpdate[] = []

  const addWrites = (writes: readonly AccountWrite[]) => {
    for (const write of writes) {
      const update = new AccountUpdate(write, createdAt, { bankId })
      accounts.push(update)
      live.push(update)
    }
  }
  const firstVersion = block.transactions.find(({ writes }) => writes.length > 0)?.writes[0]?.writeVersion
  const isEarly = ({ writeVersion }: AccountWrite) => firstVersion === undefined || writeVersion < firstVersion
  addWrites(block.systemWrites.filter(isEarly))
  for (const record of block.transactions) {
    addWrites(record.writes)
    const update = new TransactionUpdate(record, createdAt, bankId)
    transactions.push(update)
    live.push(update)
  }
  addWrites(block.systemWrites.filter((write) => !isEarly(write)))
  const { slot, footer } = block
  const entries = block.entries.map((entry, index) => new EntryUpdate(entry, { slot, index, createdAt, bankId }))
  live.push(...entries)

  const newest = new Map<string, AccountUpdate>()
  for (const update of accounts) {
    const other = newest.get(update.write.address)
    if (!other || other.write.writeVersion < update.write.writeVersion) newest.set(update.write.address, update)
  }
  const last = new Set<Update>(newest.values())
  return {
    live,
    settled: live.filter((update) => update.kind !== 'account' || last.has(update)),
    summary: [
      new BlockUpdate(
        block,
        { transactions, accounts: accounts.filter((update) => last.has(update)), entries },
        createdAt,
        bankId,
      ),
      new BlockMetaUpdate(block, createdAt, bankId),
      ...(footer && bankId !== undefined ? [new FooterUpdate({ slot, bankId }, footer, createdAt)] : []),
    ],
  }
}
