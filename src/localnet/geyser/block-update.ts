import { RewardType } from '../../solana/gen/solana-storage_pb.ts'
import type { BankId, Block } from '../chain/model.ts'
import type { AccountUpdate } from './account-update.ts'
import type { DataSlices } from './data-slices.ts'
import type { EntryUpdate } from './entry-update.ts'
import { writeBankId, writer } from './scratch.ts'
import type { TransactionUpdate } from './transaction-update.ts'

/** The parts of a block that one named filter selects. Undefined members are omitted from the message. */
export type BlockParts = {
  readonly transactions: readonly TransactionUpdate[] | undefined
  readonly accounts: readonly AccountUpdate[] | undefined
  readonly entries: readonly EntryUpdate[] | undefined
  readonly slices: DataSlices
}

export class BlockUpdate {
  readonly kind = 'block'
  readonly block: Block
  readonly transactions: readonly TransactionUpdate[]
  /** The last write of each account in this block. */
  readonly accounts: readonly AccountUpdate[]
  readonly entries: readonly EntryUpdate[]
  readonly #createdAt: Uint8Array
  readonly #bankId: BankId

  constructor(
    block: Block,
    content: {
      readonly transactions: readonly TransactionUpdate[]
      readonly accounts: readonly AccountUpdate[]
      readonly entries: readonly EntryUpdate[]
    },
    createdAt: Uint8Array,
    bankId?: BankId,
  ) {
    this.block = block
    this.#bankId = bankId
    this.transactions = content.transactions
    this.accounts = content.accounts
    this.entries = content.entries
    this.#createdAt = createdAt
  }

  /** Not cached: block filters differ too much between streams. */
  encode(parts: BlockParts): Uint8Array {
    const { block } = this
    const transactions = parts.transactions?.map((update) => update.info()) ?? []
    const accounts = parts.accounts?.map((update) => update.info(parts.slices)) ?? []
    const entries = parts.entries?.map((update) => update.info()) ?? []
    writer.message(5, () => {
      writer.uint(1, block.slot)
      writer.text(2, block.blockhash)
      writer.message(3, () => writeRewards(block))
      writer.message(4, () => writer.int(1, block.time))
      writer.message(5, () => writer.uint(1, block.height))
      for (const info of transactions) writer.presentBytes(6, info)
      writer.uint(7, block.parentSlot)
      writer.text(8, block.previousBlockhash)
      writer.uint(9, block.transactions.length)
      writer.uint(10, this.accounts.length)
      for (const info of accounts) writer.presentBytes(11, info)
      writer.uint(12, block.entries.length)
      for (const info of entries) writer.presentBytes(13, info)
      writeBankId(14, this.#bankId)
    })
    writer.raw(this.#createdAt)
    return writer.take()
  }
}

export class BlockMetaUpdate {
  readonly kind = 'blockMeta'
  readonly #body: Uint8Array

  constructor(block: Block, createdAt: Uint8Array, bankId?: BankId) {
    writer.message(7, () => {
      writer.uint(1, block.slot)
      writer.text(2, block.blockhash)
      writer.message(3, () => writeRewards(block))
      writer.message(4, () => writer.int(1, block.time))
      writer.message(5, () => writer.uint(1, block.height))
      writer.uint(6, block.parentSlot)
      writer.text(7, block.previousBlockhash)
      writer.uint(8, block.transactions.length)
      writer.uint(9, block.entries.length)
      writeBankId(10, bankId)
    })
    writer.raw(createdAt)
    this.#body = writer.take()
  }

  body(): Uint8Array {
    return this.#body
  }
}

/** The message Rewards. The only rewards on this chain are the leader's fees. */
function writeRewards({ rewards = [] }: Block): void {
  for (const { pubkey, lamports, postBalance } of rewards) {
    writer.message(1, () => {
      writer.text(1, pubkey)
      writer.int(2, lamports)
      writer.uint(3, postBalance)
      writer.uint(4, RewardType.Fee)
    })
  }
}
