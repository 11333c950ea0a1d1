import { setBounded } from '../../core/bounded-map.ts'
import { isSimpleVote } from '../../solana/transaction/simple-vote.ts'
import { unpackCore } from './block-codec.ts'
import type { Block, TransactionPosition, TransactionRecord } from './model.ts'
import { PerformanceSamples } from './performance-samples.ts'
import { keysOf, parseRecorded } from './transaction-facts.ts'

export type LedgerOptions = {
  /** Bytes of packed blocks kept; the oldest blocks are evicted first. */
  readonly bytesMax: number
  readonly blocksMax: number
  /** How far the finalized block is behind the newest one at most. */
  readonly finalizedSlots?: number
}

/** Bytes of index entries that a block takes beside its packed form. */
const BLOCK_BYTES = 256
const TRANSACTION_BYTES = 512
/** The finality of the tower. */
const FINALIZED_SLOTS_MIN = 31
/** Blocks kept as objects with all their writes: those that are not finalized, and this many more for listeners that lag; */
const WARM_FINALIZED_BLOCKS = 9
/** at most this many, which covers a Geyser replay and the slots up to finality; */
const WARM_BLOCKS_MAX = 190
/** and fewer when together they hold more than this many transactions. */
const WARM_TRANSACTIONS_MAX = 20_000
/** Older blocks that were recently read, as objects. */
const READ_CACHE_BLOCKS = 8

/**
 * The retained blocks, indexed by slot, signature and address. The newest blocks are objects; older ones are kept as
 * the same bytes as on disk and unpacked on read.
 */
export class Ledger {
  readonly samples = new PerformanceSamples()
  readonly #options: LedgerOptions
  readonly #warmBlocksMin: number
  readonly #packed = new Map<number, Uint8Array>()
  readonly #warm = new Map<number, Block>()
  readonly #read = new Map<number, Block>()
  readonly #bySignature = new Map<string, Position>()
  readonly #byAddress = new Map<string, AddressHistory>()
  #bytes = 0
  #warmTransactions = 0

  constructor(options: LedgerOptions) {
    this.#options = options
    this.#warmBlocksMin = Math.max(options.finalizedSlots ?? 0, FINALIZED_SLOTS_MIN) + WARM_FINALIZED_BLOCKS
  }

  get firstSlot(): number {
    return this.#packed.keys().next().value ?? 0
  }

  /** The oldest block with its writes; older ones are read without them. */
  get firstSlotWithWrites(): number {
    return this.#warm.keys().next().value ?? this.firstSlot
  }

  get bytes(): number {
    return this.#bytes
  }

  add(block: Block, core: Uint8Array): void {
    this.#packed.set(block.slot, core)
    this.#bytes += weightOf(core, block)
    this.#warm.set(block.slot, block)
    this.#warmTransactions += block.transactions.length
    let votes = 0
    for (const record of block.transactions) {
      const transaction = parseRecorded(record)
      if (isSimpleVote(transaction)) votes++
      const position = positionOf(record)
      this.#bySignature.set(record.signature, position)
      for (const address of keysOf(transaction, record.meta)) this.#remember(address, position)
    }
    this.samples.add(block, block.transactions.length, votes)
    this.#coolDown()
    while (this.#packed.size > WARM_BLOCKS_MAX && this.#isOverfull()) this.#dropOldest()
  }

  /** Without unpacking the block. */
  hasBlock(slot: number): boolean {
    return this.#packed.has(slot)
  }

  block(slot: number): Block | undefined {
    const ready = this.#warm.get(slot) ?? this.#read.get(slot)
    if (ready) return ready
    const core = this.#packed.get(slot)
    if (!core) return undefined
    const { block } = unpackCore(core)
    setBounded(this.#read, slot, block, READ_CACHE_BLOCKS)
    return block
  }

  transaction(signature: string): TransactionRecord | undefined {
    const position = this.#bySignature.get(signature)
    return position === undefined ? undefined : this.#recordAt(position)
  }

  has(signature: string): boolean {
    return this.#bySignature.has(signature)
  }

  /**
   * The transactions of an address before this one, or all, newest first. Blocks may be added and evicted between two of them: the position in the list is
   * looked up again each time.
   */
  *signaturesOf(address: string, before?: TransactionPosition): Generator<TransactionRecord> {
    let end = before === undefined ? Number.POSITIVE_INFINITY : positionOf(before)
    for (;;) {
      const position = this.#newestBefore(address, end)
      if (position === undefined) return
      const record = this.#recordAt(position)
      if (record) yield record
      end = position
    }
  }

  #newestBefore(address: string, end: Position): Position | undefined {
    const history = this.#byAddress.get(address)
    if (!history) return undefined
    const { positions, dropped } = history
    let [low, high] = [dropped, positions.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((positions[middle] as Position) < end) low = middle + 1
      else high = middle
    }
    return low === dropped ? undefined : positions[low - 1]
  }

  #recordAt(position: Position): TransactionRecord | undefined {
    return this.block(Math.floor(position / POSITIONS_PER_BLOCK))?.transactions[position % POSITIONS_PER_BLOCK]
  }

  #remember(address: string, position: Position): void {
    const history = this.#byAddress.get(address)
    if (history) history.positions.push(position)
    else this.#byAddress.set(address, { positions: [position], dropped: 0 })
  }

  #isOverfull(): boolean {
    return this.#bytes > this.#options.bytesMax || this.#packed.size > this.#options.blocksMax
  }

  #coolDown(): void {
    while (
      this.#warm.size > WARM_BLOCKS_MAX ||
      (this.#warm.size > this.#warmBlocksMin && this.#warmTransactions > WARM_TRANSACTIONS_MAX)
    ) {
      const [slot, block] = this.#warm.entries().next().value as [number, Block]
      this.#warm.delete(slot)
      this.#warmTransactions -= block.transactions.length
    }
  }

  #dropOldest(): void {
    const slot = this.firstSlot
    const block = this.block(slot) as Block
    this.#bytes -= weightOf(this.#packed.get(slot) as Uint8Array, block)
    this.#packed.delete(slot)
    this.#read.delete(slot)
    for (const record of block.transactions) {
      this.#bySignature.delete(record.signature)
      for (const address of keysOf(parseRecorded(record), record.meta)) this.#forgetOldest(address)
    }
  }

  #forgetOldest(address: string): void {
    const history = this.#byAddress.get(address)
    if (!history) return
    history.dropped++
    if (history.dropped === history.positions.length) this.#byAddress.delete(address)
    else if (history.dropped > 1024 && history.dropped * 2 > history.positions.length) {
      history.positions.splice(0, history.dropped)
      history.dropped = 0
    }
  }
}

/** Slot and transaction index in one number: slots stay below 2^37 for two thousand years, an index fits 16 bits. */
type Position = number
const POSITIONS_PER_BLOCK = 65_536

function positionOf({ slot, index }: TransactionPosition): Position {
  return slot * POSITIONS_PER_BLOCK + index
}

/** In order of execution; the first `dropped` ones were evicted from the ledger. */
type AddressHistory = { readonly positions: Position[]; dropped: number }

function weightOf(core: Uint8Array, block: Block): number {
  return core.length + BLOCK_BYTES + block.transactions.length * TRANSACTION_BYTES
}
