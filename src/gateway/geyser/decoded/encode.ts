import { SlotStatus } from '../../../solana/gen/geyser_pb.ts'
import { ProtobufWriter } from '../../../solana/geyser/protobuf-writer.ts'
import { putKey, putSignature } from '../../../solana/geyser/put-fields.ts'
import { createMeasured, measureTransaction, putTransaction } from '../../../solana/geyser/put-wire-transaction.ts'
import { writeCreatedAt } from '../../../solana/geyser/update-envelope.ts'
import { putVarint, varintBytes } from '../../../solana/geyser/varint.ts'
import { writeTransaction } from '../../../solana/geyser/write-transaction.ts'
import type { DecodedDataSet, DecodedSlot, DecodedTransaction } from './source.ts'

// Field numbers: SubscribeUpdateDeshred of proto/geyser.proto. `filters` (1) stands before a body and differs from stream to stream.

const CREATED_AT_FIELD = 5

/** One buffer for all bodies. Empty whenever no function of this file runs. */
const writer = new ProtobufWriter()
/** For transactions alone: another message may be made while one of them is added to streams. */
const transactionWriter = new ProtobufWriter()

/** The bytes are valid until the next call: they are copied for each stream, and the same memory stays in the cache of the processor. */
export function encodeTransactionUpdate(
  set: DecodedDataSet,
  transaction: DecodedTransaction,
  unixMs: number,
): Uint8Array {
  if (transaction.wire === undefined) writeParsedUpdate(set, transaction, unixMs)
  else putWireUpdate(endsOf(set, unixMs), transaction, transaction.wire)
  return transactionWriter.takeTemporary()
}

function writeParsedUpdate(set: DecodedDataSet, transaction: DecodedTransaction, unixMs: number): void {
  const writer = transactionWriter
  writer.message(2, () => {
    writer.message(1, () => {
      writer.bytes(1, transaction.parsed.signatures[0] as Uint8Array)
      writer.bool(2, transaction.isVote)
      writer.message(3, () => writeTransaction(writer, transaction.parsed))
      for (const address of transaction.loadedWritable) writer.presentBytes(4, address)
      for (const address of transaction.loadedReadonly) writer.presentBytes(5, address)
      writer.uint(6, set.startIndex)
      writer.uint(7, set.endIndex)
      writer.bool(100, transaction.hasUnknownTable)
    })
    writer.uint(2, set.slot)
  })
  writeCreatedAt(writer, CREATED_AT_FIELD, unixMs)
}

const measured = createMeasured()
const UPDATE_TAG = (2 << 3) | 2
const INFO_TAG = (1 << 3) | 2
const SIGNATURE_TAG = (1 << 3) | 2
const VOTE_TAG = 2 << 3
const TRANSACTION_TAG = (3 << 3) | 2
const WRITABLE_TAG = (4 << 3) | 2
const READONLY_TAG = (5 << 3) | 2
/** The field 100 with the value true. */
const UNKNOWN_TABLE = Uint8Array.of(0xa0, 0x06, 1)
const SIGNATURE_FIELD_BYTES = 66
const KEY_BYTES = 32
const KEY_FIELD_BYTES = 2 + KEY_BYTES
/** Tags and lengths of the update, the info and the transaction, each with at most five bytes of length. */
const PREFIXES_BYTES_MAX = 3 * 6

/** As `writeParsedUpdate`. All lengths are known before the first byte is written: most messages of a thread are made here. */
function putWireUpdate(ends: UpdateEnds, transaction: DecodedTransaction, wire: Uint8Array): void {
  const { isVote, hasUnknownTable } = transaction
  measureTransaction(wire, measured)
  const loaded = countLoaded(transaction)
  let infoBytes = SIGNATURE_FIELD_BYTES + (isVote ? 2 : 0) + 1 + varintBytes(measured.bytes) + measured.bytes
  infoBytes += KEY_FIELD_BYTES * loaded + ends.indexes.length + (hasUnknownTable ? UNKNOWN_TABLE.length : 0)
  let at = transactionWriter.reserve(PREFIXES_BYTES_MAX + infoBytes + ends.slot.length + ends.createdAt.length)
  const { buffer } = transactionWriter
  buffer[at] = UPDATE_TAG
  at = putVarint(buffer, at + 1, 1 + varintBytes(infoBytes) + infoBytes + ends.slot.length)
  buffer[at] = INFO_TAG
  at = putVarint(buffer, at + 1, infoBytes)
  at = putSignature(buffer, at, SIGNATURE_TAG, wire, measured.signaturesAt)
  if (isVote) {
    buffer[at++] = VOTE_TAG
    buffer[at++] = 1
  }
  buffer[at] = TRANSACTION_TAG
  at = putVarint(buffer, at + 1, measured.bytes)
  at = putTransaction(wire, measured, buffer, at)
  if (loaded > 0) at = putLoaded(transaction, buffer, at)
  at = putBytes(buffer, at, ends.indexes)
  if (hasUnknownTable) at = putBytes(buffer, at, UNKNOWN_TABLE)
  at = putBytes(buffer, at, ends.slot)
  transactionWriter.advance(putBytes(buffer, at, ends.createdAt))
}

function countLoaded(transaction: DecodedTransaction): number {
  const { loaded } = transaction
  if (loaded !== undefined) return loaded.writable + loaded.readonly
  return transaction.loadedWritable.length + transaction.loadedReadonly.length
}

function putLoaded(transaction: DecodedTransaction, target: Uint8Array, start: number): number {
  const { loaded } = transaction
  let at = start
  if (loaded === undefined) {
    for (const address of transaction.loadedWritable) at = putKey(target, at, WRITABLE_TAG, address, 0)
    for (const address of transaction.loadedReadonly) at = putKey(target, at, READONLY_TAG, address, 0)
    return at
  }
  for (let i = 0; i < loaded.writable + loaded.readonly; i++) {
    const tag = i < loaded.writable ? WRITABLE_TAG : READONLY_TAG
    at = putKey(target, at, tag, loaded.bytes, loaded.at + i * KEY_BYTES)
  }
  return at
}

/** The fields that stand behind each transaction of a data set and are the same for all of them. */
type UpdateEnds = {
  readonly of: Pick<DecodedDataSet, 'slot' | 'startIndex' | 'endIndex'>
  readonly unixMs: number
  /** Field of the info. */
  readonly indexes: Uint8Array
  /** Fields of the update. */
  readonly slot: Uint8Array
  readonly createdAt: Uint8Array
}

let lastEnds: UpdateEnds | undefined

function endsOf({ slot, startIndex, endIndex }: DecodedDataSet, unixMs: number): UpdateEnds {
  const last = lastEnds?.of
  const isSame = last?.slot === slot && last.startIndex === startIndex && last.endIndex === endIndex
  if (lastEnds !== undefined && isSame && lastEnds.unixMs === unixMs) return lastEnds
  writer.uint(6, startIndex)
  writer.uint(7, endIndex)
  const indexes = Uint8Array.from(writer.take())
  writer.uint(2, slot)
  const slotField = Uint8Array.from(writer.take())
  writeCreatedAt(writer, CREATED_AT_FIELD, unixMs)
  const createdAt = Uint8Array.from(writer.take())
  lastEnds = { of: { slot, startIndex, endIndex }, unixMs, indexes, slot: slotField, createdAt }
  return lastEnds
}

function putBytes(target: Uint8Array, start: number, source: Uint8Array): number {
  let at = start
  for (let i = 0; i < source.length; i++) target[at++] = source[i] as number
  return at
}

const SLOT_STATUSES: Readonly<Record<DecodedSlot['kind'], SlotStatus>> = {
  'first-shred': SlotStatus.SLOT_FIRST_SHRED_RECEIVED,
  completed: SlotStatus.SLOT_COMPLETED,
  // As a node: it makes another bank for the slot, with the new parent.
  'parent-changed': SlotStatus.SLOT_CREATED_BANK,
  lost: SlotStatus.SLOT_DEAD,
}

export function encodeSlotUpdate(slot: DecodedSlot, unixMs: number): Uint8Array {
  writeCreatedAt(writer, CREATED_AT_FIELD, unixMs)
  writer.message(6, () => {
    writer.uint(1, slot.slot)
    if (slot.parentSlot !== undefined) writer.presentUint(2, slot.parentSlot)
    writer.uint(3, SLOT_STATUSES[slot.kind])
    if (slot.kind === 'lost') writer.presentText(4, slot.reason)
    if (slot.kind === 'parent-changed') writer.presentUint(100, slot.voidBeforeIndex)
  })
  return writer.take()
}

export function encodePing(unixMs: number): Uint8Array {
  writer.message(3, () => {})
  writeCreatedAt(writer, CREATED_AT_FIELD, unixMs)
  return writer.take()
}

export function encodePong(id: number, unixMs: number): Uint8Array {
  writer.message(4, () => writer.int(1, id))
  writeCreatedAt(writer, CREATED_AT_FIELD, unixMs)
  return writer.take()
}

/** shredstream.Entry: the slot and the bincode of its entries. */
export function encodeEntries(slot: number, entries: Uint8Array): Uint8Array {
  writer.uint(1, slot)
  writer.bytes(2, entries)
  return writer.take()
}
