import { createTimeSlices, type TimeSlices } from '../../platform/process/time-slices.ts'
import { isSimpleVoteWire } from '../../solana/transaction/simple-vote.ts'
import { parseTransaction } from '../../solana/transaction/transaction.ts'
import { FORMAT_LIMITS, type ParsedTransaction } from '../../solana/transaction/types.ts'
import { createWireFields, locateFields } from '../../solana/transaction/wire-fields.ts'
import { parentOf } from './data-set.ts'
import type { Gap, MarkerSet } from './events.ts'
import {
  type DecodedMessage,
  type DeliveredSet,
  type DeliveredTransaction,
  decodeMessage,
  type LoadedRange,
  type UpstreamDelivery,
} from './messages.ts'
import { readUpstreamTransaction } from './node-streams/transaction.ts'
import { openOutputReader } from './output-ring.ts'

/** Decoded shreds as a thread with its own event loop reads them. All calls of one read are followed by `onBatchEnd`. */
export type DecodedSource = {
  /** Calls the reader with everything from now on. */
  read(reader: DecodedReader): Disposable
}

export type DecodedReader = {
  /** The bytes of the data set are valid until the call returns. */
  onDataSet(set: DecodedDataSet): void
  onSlot(slot: DecodedSlot): void
  /** The thread fell behind the engine by so many records. */
  onLost(records: number): void
  /** The next read waits for the promise. */
  onBatchEnd(): Promise<void> | undefined
}

export type DecodedDataSet = {
  readonly slot: number
  readonly startIndex: number
  readonly endIndex: number
  /**
   * Bincode of a vector of entries. Undefined where the transactions come from a node, and for a part of a large data set that ends inside an entry: the
   * whole entry comes with a later part.
   */
  readonly entries: Uint8Array | undefined
  readonly transactions: readonly DecodedTransaction[]
  readonly arrivalNanos: number
}

export type DecodedTransaction = {
  readonly parsed: ParsedTransaction
  /** The wire form, which shreds have and nodes do not send: reading it takes less time than `parsed`. */
  readonly wire?: Uint8Array | undefined
  readonly isVote: boolean
  readonly loadedWritable: readonly Uint8Array[]
  readonly loadedReadonly: readonly Uint8Array[]
  /** The same without an array for each, where they stand one after the other. */
  readonly loaded?: LoadedRange | undefined
  readonly hasUnknownTable: boolean
}

export type DecodedSlot =
  | {
      readonly kind: 'first-shred' | 'completed'
      readonly slot: number
      readonly parentSlot: number | undefined
    }
  | {
      readonly kind: 'parent-changed'
      readonly slot: number
      readonly parentSlot: number | undefined
      /** Data sets that end at this shred or before it are void. */
      readonly voidBeforeIndex: number
    }
  | {
      readonly kind: 'lost'
      readonly slot: number
      readonly parentSlot: number | undefined
      readonly reason: string
      readonly isDecoded?: boolean
    }

/** Records read before other work of the event loop has its turn. */
const RECORDS_PER_TURN = 32
/**
 * Transactions read before what was made of them is written. A reader that was held up writes the oldest data sets first, and reads twice as much in each
 * turn until it has caught up: longer turns need fewer writes.
 */
const FIRST_TURN_TRANSACTIONS = 16
const TURN_TRANSACTIONS_MAX = 2048
/** Slots that an engine has open, at most: what comes of a slot comes while it is open. */
const ANNOUNCED_SLOTS = 8192
/** A wake-up that was missed costs no more than this. */
const WAIT_MS = 100

/** What the engine of ShredStream Decoded writes, as a gateway thread reads it. `beginTurn` limits the time of a turn. */
export function createDecodedSource(
  output: SharedArrayBuffer,
  beginTurn: () => TimeSlices = createTimeSlices,
): DecodedSource {
  return {
    read(reader) {
      let isReading = true
      void run(output, reader, { isReading: () => isReading, beginTurn })
      return { [Symbol.dispose]: () => void (isReading = false) }
    },
  }
}

async function run(
  output: SharedArrayBuffer,
  reader: DecodedReader,
  { isReading, beginTurn }: { readonly isReading: () => boolean; readonly beginTurn: () => TimeSlices },
): Promise<void> {
  const records = openOutputReader(output, { reusesMemory: true })
  const joiner = new EntriesJoiner()
  const announced = new AnnouncedSlots()
  let transactionsMax = FIRST_TURN_TRANSACTIONS
  while (isReading()) {
    const slices = beginTurn()
    let count = 0
    let transactions = 0
    let hasMore = true
    // Records of nodes have one transaction each.
    const recordsMax = Math.max(RECORDS_PER_TURN, transactionsMax)
    for (; count < recordsMax && transactions < transactionsMax && !slices.isSpent(); count++) {
      const record = records.next()
      if (record === undefined) {
        hasMore = false
        break
      }
      const message = decodeMessage(record.payload)
      if (record.lost > 0) reader.onLost(record.lost)
      if (record.lost > 0 || isPartMissing(message)) joiner.reset()
      if (hasContent(message) && announced.add(message.slot))
        reader.onSlot({ kind: 'first-shred', slot: message.slot, parentSlot: undefined })
      if (message.kind === 'data-set' || message.kind === 'upstream-transaction') {
        const set = message.kind === 'data-set' ? dataSetOf(message, joiner.join(message)) : upstreamSetOf(message)
        transactions += set.transactions.length
        reader.onDataSet(set)
      } else {
        const slot = slotOf(message, announced.newest)
        if (slot !== undefined) reader.onSlot(slot)
        // The slots after it may be lower.
        if (message.kind === 'started') announced.clear()
      }
    }
    if (count > 0) await reader.onBatchEnd()
    transactionsMax = hasMore ? Math.min(2 * transactionsMax, TURN_TRANSACTIONS_MAX) : FIRST_TURN_TRANSACTIONS
    if (hasMore) await slices.yield()
    else await records.wait(WAIT_MS)
  }
}

function hasContent(message: DecodedMessage): message is DeliveredSet | UpstreamDelivery | MarkerSet {
  return message.kind === 'data-set' || message.kind === 'upstream-transaction' || message.kind === 'marker'
}

/** The slots whose first shred was announced. They overlap: a newer slot may come before the rest of an older one. */
class AnnouncedSlots {
  newest = -1
  readonly #slots = new Float64Array(ANNOUNCED_SLOTS).fill(-1)

  /** False for one that is announced already. */
  add(slot: number): boolean {
    const at = slot % ANNOUNCED_SLOTS
    if (this.#slots[at] === slot) return false
    this.#slots[at] = slot
    this.newest = Math.max(this.newest, slot)
    return true
  }

  clear(): void {
    this.newest = -1
    this.#slots.fill(-1)
  }
}

/** Joins the parts of an entry that is longer than a part. Those of one that was not read from its beginning to its end are left out. */
class EntriesJoiner {
  #pieces: Uint8Array[] = []

  join({ entriesBytes, part }: DeliveredSet): Uint8Array | undefined {
    // Data sets of other slots come between the parts of a large one.
    if (part === undefined) return entriesBytes
    if (!part.isContinuation) this.#pieces = []
    else if (this.#pieces.length === 0) return undefined
    if (part.isContinued) {
      // The memory of a record is used again for the next.
      this.#pieces.push(Uint8Array.from(entriesBytes))
      return undefined
    }
    const pieces = this.#pieces
    this.#pieces = []
    return pieces.length === 0 ? entriesBytes : Buffer.concat([...pieces, entriesBytes])
  }

  /** A part may be missing. */
  reset(): void {
    this.#pieces = []
  }
}

function isPartMissing(message: DecodedMessage): boolean {
  return message.kind === 'started' || (message.kind === 'gap' && message.reason === 'too-large')
}

function dataSetOf(set: DeliveredSet, entries: Uint8Array | undefined): DecodedDataSet {
  const { slot, startIndex, endIndex, arrivalNanos } = set
  const transactions: DecodedTransaction[] = []
  // What a node had first was delivered then.
  for (const each of set.transactions) if (!each.wasDelivered) transactions.push(new LazyTransaction(each))
  return { slot, startIndex, endIndex, arrivalNanos, entries, transactions }
}

/** One transaction of a data set, without its entries. */
function upstreamSetOf({ slot, startIndex, endIndex, arrivalNanos, loaded, update }: UpstreamDelivery): DecodedDataSet {
  const transaction = readUpstreamTransaction(update)
  const transactions =
    transaction === undefined ? [] : [loaded === undefined ? transaction : withLoaded(transaction, loaded)]
  return { slot, startIndex, endIndex, arrivalNanos, entries: undefined, transactions }
}

function withLoaded(
  transaction: DecodedTransaction,
  { writable, readonly }: NonNullable<UpstreamDelivery['loaded']>,
): DecodedTransaction {
  return { ...transaction, loadedWritable: writable, loadedReadonly: readonly, hasUnknownTable: false }
}

const fields = createWireFields()

/** Parsed only where its wire form is not enough. */
class LazyTransaction implements DecodedTransaction {
  readonly #delivered: DeliveredTransaction
  readonly wire: Uint8Array
  #parsed: ParsedTransaction | undefined
  #isVote: boolean | undefined

  constructor(delivered: DeliveredTransaction) {
    this.#delivered = delivered
    this.wire = delivered.bytes
  }

  get parsed(): ParsedTransaction {
    if (this.#parsed === undefined) {
      const parse = parseTransaction(this.#delivered.bytes, FORMAT_LIMITS)
      if (!parse.ok) throw new TypeError(`the engine delivered a transaction that cannot be parsed: ${parse.reason}`)
      this.#parsed = parse.transaction
    }
    return this.#parsed
  }

  get isVote(): boolean {
    this.#isVote ??= isVoteWire(this.wire)
    return this.#isVote
  }

  get loaded(): LoadedRange | undefined {
    return this.#delivered.loaded
  }

  get loadedWritable(): readonly Uint8Array[] {
    return this.#delivered.loadedWritable
  }

  get loadedReadonly(): readonly Uint8Array[] {
    return this.#delivered.loadedReadonly
  }

  get hasUnknownTable(): boolean {
    return this.#delivered.isUnresolved
  }
}

function isVoteWire(wire: Uint8Array): boolean {
  locateFields(wire, fields)
  return isSimpleVoteWire(wire, fields)
}

/** What a message says about a slot. */
function slotOf(
  message: Exclude<DecodedMessage, DeliveredSet | UpstreamDelivery>,
  newestSlot: number,
): DecodedSlot | undefined {
  switch (message.kind) {
    case 'gap': {
      const { slot, startIndex, endIndex, reason, dataSets } = message
      if (reason === 'too-large' || reason === 'too-late') {
        const limit = reason === 'too-large' ? 'decodedDataSetBytes' : 'decodedMergeSlots'
        const text = `${reason}: the data set of shreds ${startIndex} to ${endIndex} was not delivered; limit: ${limit}`
        return { kind: 'lost', slot, parentSlot: undefined, reason: text, isDecoded: true }
      }
      if (reason === 'slot-unknown') {
        const text = `${reason}: no shred of ${slotsText(message)} arrived in time; skipped slots have none`
        return { kind: 'lost', slot, parentSlot: undefined, reason: text }
      }
      const until = endIndex === undefined ? 'on' : `to ${endIndex}`
      const text = `${reason}: at least ${dataSets} data sets from shred ${startIndex} ${until} were not decoded`
      return { kind: 'lost', slot, parentSlot: undefined, reason: text }
    }
    case 'slot-completed':
      return { kind: 'completed', slot: message.slot, parentSlot: message.parentSlot }
    case 'started': {
      // The first start is no loss: there was nothing to read before it.
      if (newestSlot < 0) return undefined
      return {
        kind: 'lost',
        slot: newestSlot,
        parentSlot: undefined,
        reason: 'the engine was restarted: open slots are incomplete',
      }
    }
    case 'marker': {
      if (!message.isParentUpdate) return undefined
      const { slot, startIndex } = message
      // Also where the new parent is not known: what was delivered of the slot before is void.
      return { kind: 'parent-changed', slot, parentSlot: parentOf(message), voidBeforeIndex: startIndex }
    }
    case 'slot-report':
      return undefined
  }
}

function slotsText({ firstSlot, slot }: Gap): string {
  return firstSlot === undefined ? `slot ${slot}` : `slots ${firstSlot} to ${slot}`
}
