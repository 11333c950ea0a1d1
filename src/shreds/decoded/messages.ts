import { Buffer } from 'node:buffer'
import type { ScannedTransaction } from '../../solana/transaction/scan.ts'
import type {
  DataSet,
  DataSetPart,
  DecodedEvent,
  EngineStarted,
  Gap,
  MarkerSet,
  SlotCompleted,
  SlotReport,
} from './events.ts'
import type { LoadedAddresses } from './lookup-tables.ts'
import type { UpstreamPlace } from './node-streams/records.ts'

/**
 * Events as records of the output ring. A data set or marker is
 *
 *     kind u8, flags u8, u16 0, start index u32, end index u32, entries u32, slot f64, arrival f64, transactions u32, loaded addresses u32
 *     for each transaction: where it begins in the batch u32, its length u32, flags u8, loaded writable u8, loaded readonly u8, 0
 *     the loaded addresses, 32 bytes each, in the order of the transactions: writable, then readonly
 *     the batch
 *
 * A transaction of a node has the same head, with the numbers of loaded writable and readonly addresses at its end, those addresses, and the update.
 * The others, of which there are few, are JSON behind the kind.
 */
export type DecodedMessage =
  | DeliveredSet
  | UpstreamDelivery
  | MarkerSet
  | SlotCompleted
  | Gap
  | SlotReport
  | EngineStarted

/** A transaction that a node's own stream had before the shreds. */
export type UpstreamDelivery = UpstreamPlace & {
  readonly kind: 'upstream-transaction'
  /** Addresses that the node could not load, where the tables of the engine have them. */
  readonly loaded: KnownAddresses | undefined
  /** SubscribeUpdateDeshredTransaction as it came. */
  readonly update: Uint8Array
}

type KnownAddresses = Pick<Extract<LoadedAddresses, { ok: true }>, 'writable' | 'readonly'>

export type DeliveredSet = Omit<DataSet, 'transactions'> & { readonly transactions: readonly DeliveredTransaction[] }

export class DeliveredTransaction {
  /** The wire form. */
  readonly bytes: Uint8Array
  /** Undefined where there are none. */
  readonly loaded: LoadedRange | undefined
  readonly #flags: number

  constructor(bytes: Uint8Array, loaded: LoadedRange | undefined, flags: number) {
    this.bytes = bytes
    this.loaded = loaded
    this.#flags = flags
  }

  get loadedWritable(): readonly Uint8Array[] {
    return this.loaded === undefined ? NO_ADDRESSES : writableOf(this.loaded)
  }

  get loadedReadonly(): readonly Uint8Array[] {
    return this.loaded === undefined ? NO_ADDRESSES : readonlyOf(this.loaded)
  }

  /** A lookup table was not known, so the loaded addresses are missing. */
  get isUnresolved(): boolean {
    return (this.#flags & TRANSACTION_FLAG.unresolved) !== 0
  }

  /** It was delivered before, as an `upstream-transaction`. */
  get wasDelivered(): boolean {
    return (this.#flags & TRANSACTION_FLAG.delivered) !== 0
  }
}

/** Loaded addresses of 32 bytes each, one after the other from `at` on: the writable ones first. */
export type LoadedRange = {
  readonly bytes: Uint8Array
  readonly at: number
  readonly writable: number
  readonly readonly: number
}

const KIND = {
  'data-set': 1,
  marker: 2,
  gap: 3,
  'slot-report': 4,
  started: 5,
  'upstream-transaction': 6,
  'slot-completed': 7,
} as const
const FLAG = { recovered: 1, verified: 2, parentUpdate: 4, part: 8, continuation: 16, continued: 32, last: 64 } as const
const HEAD_BYTES = 40
const TRANSACTION_BYTES = 12
const ADDRESS_BYTES = 32
const NO_ADDRESSES: readonly Uint8Array[] = []
const TRANSACTION_FLAG = { unresolved: 1, delivered: 2 } as const

/** The parts of the record, to be written one after the other. `wasDelivered` is by transaction; without it none was. */
export function encodeEvent(
  event: DecodedEvent | EngineStarted,
  resolve: (at: number) => LoadedAddresses,
  wasDelivered?: readonly boolean[],
): Uint8Array[] {
  switch (event.kind) {
    case 'data-set':
      return encodeDataSet(event, resolve, wasDelivered)
    case 'marker': {
      const head = encodeHead(event, event.isParentUpdate ? FLAG.parentUpdate : 0)
      return [head, event.bytes]
    }
    case 'slot-completed':
    case 'gap':
    case 'slot-report':
    case 'started':
      return [Uint8Array.of(KIND[event.kind]), Buffer.from(JSON.stringify(event))]
  }
}

/** The same for a transaction of a node. */
export function encodeUpstreamDelivery(
  place: UpstreamPlace,
  update: Uint8Array,
  loaded?: KnownAddresses,
): Uint8Array[] {
  const head = encodeHead({ kind: 'upstream-transaction', ...place }, 0)
  if (loaded === undefined) return [head, update]
  const view = new DataView(head.buffer)
  view.setUint32(32, loaded.writable.length, true)
  view.setUint32(36, loaded.readonly.length, true)
  return [head, ...loaded.writable, ...loaded.readonly, update]
}

/** The length of the record of a data set. */
export function dataSetLength({ transactions, entriesBytes }: DataSet, loaded: readonly LoadedAddresses[]): number {
  let length = HEAD_BYTES + TRANSACTION_BYTES * transactions.length + entriesBytes.length
  for (const each of loaded) if (each.ok) length += ADDRESS_BYTES * (each.writable.length + each.readonly.length)
  return length
}

function encodeDataSet(
  set: DataSet,
  resolve: (at: number) => LoadedAddresses,
  wasDelivered: readonly boolean[] | undefined,
): Uint8Array[] {
  const { transactions, entriesBytes } = set
  const loaded = transactions.map((_, i) => resolve(i))
  const addressesAt = HEAD_BYTES + TRANSACTION_BYTES * transactions.length
  const bytes = dataSetLength(set, loaded) - entriesBytes.length
  // Head, table and addresses in one piece: each part of a record is a call for the ring.
  const front = Buffer.allocUnsafeSlow(bytes).fill(0, 0, addressesAt)
  const view = new DataView(front.buffer)
  const flags = (set.wasRecovered ? FLAG.recovered : 0) | (set.isVerified ? FLAG.verified : 0) | partFlags(set.part)
  putHead(front, view, set, flags)
  view.setUint32(12, set.entries, true)
  view.setUint32(32, transactions.length, true)
  view.setUint32(36, (bytes - addressesAt) / ADDRESS_BYTES, true)
  let addressAt = addressesAt
  for (let i = 0; i < transactions.length; i++) {
    const transaction = transactions[i] as ScannedTransaction
    const each = loaded[i] as LoadedAddresses
    const at = HEAD_BYTES + i * TRANSACTION_BYTES
    view.setUint32(at, transaction.at, true)
    view.setUint32(at + 4, transaction.wireLength, true)
    const delivered = wasDelivered?.[i] === true ? TRANSACTION_FLAG.delivered : 0
    front[at + 8] = delivered | (each.ok ? 0 : TRANSACTION_FLAG.unresolved)
    if (!each.ok) continue
    front[at + 9] = each.writable.length
    front[at + 10] = each.readonly.length
    addressAt = putAddresses(front, addressAt, each.writable)
    addressAt = putAddresses(front, addressAt, each.readonly)
  }
  return [front, entriesBytes]
}

function putAddresses(target: Uint8Array, start: number, addresses: readonly Uint8Array[]): number {
  let at = start
  for (const address of addresses) {
    target.set(address, at)
    at += ADDRESS_BYTES
  }
  return at
}

function partFlags(part: DataSetPart | undefined): number {
  if (part === undefined) return 0
  const { isContinuation, isContinued, isLast } = part
  return (
    FLAG.part | (isContinuation ? FLAG.continuation : 0) | (isContinued ? FLAG.continued : 0) | (isLast ? FLAG.last : 0)
  )
}

function partOf(flags: number): DataSetPart | undefined {
  if ((flags & FLAG.part) === 0) return undefined
  return {
    isContinuation: (flags & FLAG.continuation) !== 0,
    isContinued: (flags & FLAG.continued) !== 0,
    isLast: (flags & FLAG.last) !== 0,
  }
}

type PlacedEvent = UpstreamPlace & { readonly kind: 'data-set' | 'marker' | 'upstream-transaction' }

function encodeHead(set: PlacedEvent, flags: number): Uint8Array {
  const head = new Uint8Array(HEAD_BYTES)
  putHead(head, new DataView(head.buffer), set, flags)
  return head
}

/** To memory that is zero. */
function putHead(head: Uint8Array, view: DataView, set: PlacedEvent, flags: number): void {
  head[0] = KIND[set.kind]
  head[1] = flags
  view.setUint32(4, set.startIndex, true)
  view.setUint32(8, set.endIndex, true)
  view.setFloat64(16, set.slot, true)
  view.setFloat64(24, set.arrivalNanos, true)
}

/** Reads a record of the output ring. The arrays of the result are views of it. */
export function decodeMessage(record: Uint8Array): DecodedMessage {
  const kind = record[0]
  if (kind !== KIND['data-set'] && kind !== KIND.marker && kind !== KIND['upstream-transaction']) {
    const text = Buffer.from(record.buffer, record.byteOffset + 1, record.length - 1).toString()
    return JSON.parse(text) as SlotCompleted | Gap | SlotReport | EngineStarted
  }
  const view = new DataView(record.buffer, record.byteOffset, record.length)
  const flags = record[1] as number
  const place = {
    slot: view.getFloat64(16, true),
    startIndex: view.getUint32(4, true),
    endIndex: view.getUint32(8, true),
    arrivalNanos: view.getFloat64(24, true),
  }
  if (kind === KIND['upstream-transaction'])
    return { kind: 'upstream-transaction', ...place, ...decodeUpstream(record, view) }
  if (kind === KIND.marker) {
    const isParentUpdate = (flags & FLAG.parentUpdate) !== 0
    return { kind: 'marker', ...place, bytes: record.subarray(HEAD_BYTES), isParentUpdate }
  }
  const count = view.getUint32(32, true)
  const addressesAt = HEAD_BYTES + count * TRANSACTION_BYTES
  const entriesBytes = record.subarray(addressesAt + view.getUint32(36, true) * ADDRESS_BYTES)
  const transactions: DeliveredTransaction[] = []
  let loadedAt = addressesAt
  for (let i = 0; i < count; i++) {
    const at = HEAD_BYTES + i * TRANSACTION_BYTES
    const begin = view.getUint32(at, true)
    const bytes = entriesBytes.subarray(begin, begin + view.getUint32(at + 4, true))
    const writable = record[at + 9] as number
    const readonly = record[at + 10] as number
    const loaded = writable + readonly === 0 ? undefined : { bytes: record, at: loadedAt, writable, readonly }
    transactions.push(new DeliveredTransaction(bytes, loaded, record[at + 8] as number))
    loadedAt += (writable + readonly) * ADDRESS_BYTES
  }
  return {
    kind: 'data-set',
    ...place,
    entriesBytes,
    entries: view.getUint32(12, true),
    transactions,
    wasRecovered: (flags & FLAG.recovered) !== 0,
    isVerified: (flags & FLAG.verified) !== 0,
    part: partOf(flags),
  }
}

function decodeUpstream(record: Uint8Array, view: DataView): Pick<UpstreamDelivery, 'loaded' | 'update'> {
  const [writable, readonly] = [view.getUint32(32, true), view.getUint32(36, true)]
  const readonlyAt = HEAD_BYTES + writable * ADDRESS_BYTES
  const update = record.subarray(readonlyAt + readonly * ADDRESS_BYTES)
  if (writable + readonly === 0) return { loaded: undefined, update }
  const loaded = {
    writable: readAddresses(record, HEAD_BYTES, writable),
    readonly: readAddresses(record, readonlyAt, readonly),
  }
  return { loaded, update }
}

function writableOf({ bytes, at, writable }: LoadedRange): readonly Uint8Array[] {
  return readAddresses(bytes, at, writable)
}

function readonlyOf({ bytes, at, writable, readonly }: LoadedRange): readonly Uint8Array[] {
  return readAddresses(bytes, at + writable * ADDRESS_BYTES, readonly)
}

function readAddresses(record: Uint8Array, at: number, count: number): readonly Uint8Array[] {
  if (count === 0) return NO_ADDRESSES
  const addresses: Uint8Array[] = []
  for (let i = 0; i < count; i++) addresses.push(record.subarray(at + i * ADDRESS_BYTES, at + (i + 1) * ADDRESS_BYTES))
  return addresses
}
