import { SlotStatus } from '../../../solana/gen/geyser_pb.ts'
import { ProtobufWriter } from '../../../solana/geyser/protobuf-writer.ts'
import { writeCreatedAt } from '../../../solana/geyser/update-envelope.ts'
import { writeTransaction, writeWireTransaction } from '../../../solana/geyser/write-transaction.ts'
import type { DecodedDataSet, DecodedSlot, DecodedTransaction } from './source.ts'

// Field numbers: SubscribeUpdateDeshred of proto/geyser.proto. `filters` (1) stands before a body and differs from stream to stream.

const CREATED_AT_FIELD = 5

/** One buffer for all bodies. Empty whenever no function of this file runs. */
const writer = new ProtobufWriter()

export function encodeTransactionUpdate(
  set: DecodedDataSet,
  transaction: DecodedTransaction,
  unixMs: number,
): Uint8Array {
  const { wire, loadedWritable, loadedReadonly } = transaction
  const bytes = (wire?.length ?? 0) + KEY_BYTES * (loadedWritable.length + loadedReadonly.length)
  const update = writer.begin(2, bytes)
  const info = writer.begin(1, bytes)
  if (wire === undefined) writer.bytes(1, transaction.parsed.signatures[0] as Uint8Array)
  else writer.presentRange(1, wire, SIGNATURE_AT, SIGNATURE_AT + SIGNATURE_BYTES)
  writer.bool(2, transaction.isVote)
  const body = writer.begin(3, bytes)
  if (wire === undefined) writeTransaction(writer, transaction.parsed)
  else writeWireTransaction(writer, wire)
  writer.end(body)
  for (const address of loadedWritable) writer.presentBytes(4, address)
  for (const address of loadedReadonly) writer.presentBytes(5, address)
  writer.uint(6, set.startIndex)
  writer.uint(7, set.endIndex)
  writer.bool(100, transaction.hasUnknownTable)
  writer.end(info)
  writer.uint(2, set.slot)
  writer.end(update)
  writeCreatedAt(writer, CREATED_AT_FIELD, unixMs)
  return writer.take()
}

const KEY_BYTES = 32
/** The first signature of a transaction with wire fields. */
const SIGNATURE_AT = 1
const SIGNATURE_BYTES = 64

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
