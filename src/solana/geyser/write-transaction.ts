import { readCompactU16 } from '../transaction/compact-u16.ts'
import type { ParsedTransaction } from '../transaction/types.ts'
import { createWireFields, locateFields } from '../transaction/wire-fields.ts'
import type { ProtobufWriter } from './protobuf-writer.ts'

// Field numbers: proto/solana-storage.proto.

/** The fields of the message Transaction. */
export function writeTransaction(writer: ProtobufWriter, transaction: ParsedTransaction): void {
  for (const signature of transaction.signatures) writer.presentBytes(1, signature)
  writer.message(2, () => writeMessage(writer, transaction))
}

function writeMessage(writer: ProtobufWriter, transaction: ParsedTransaction): void {
  const { header, config } = transaction
  writer.message(1, () => {
    writer.uint(1, header.numRequiredSignatures)
    writer.uint(2, header.numReadonlySigned)
    writer.uint(3, header.numReadonlyUnsigned)
  })
  for (const key of transaction.staticKeys) writer.presentBytes(2, key)
  writer.bytes(3, transaction.recentBlockhash)
  for (const { programIdIndex, accounts, data } of transaction.instructions) {
    writer.message(4, () => {
      writer.uint(1, programIdIndex)
      writer.bytes(2, accounts)
      writer.bytes(3, data)
    })
  }
  writer.bool(5, transaction.version !== 'legacy')
  for (const { accountKey, writableIndexes, readonlyIndexes } of transaction.addressTableLookups) {
    writer.message(6, () => {
      writer.bytes(1, accountKey)
      writer.bytes(2, writableIndexes)
      writer.bytes(3, readonlyIndexes)
    })
  }
  if (!config) return
  writer.message(7, () => {
    if (config.priorityFeeLamports !== null) writer.presentUint(1, config.priorityFeeLamports)
    if (config.computeUnitLimit !== null) writer.presentUint(2, config.computeUnitLimit)
    if (config.loadedAccountsDataSizeLimit !== null) writer.presentUint(3, config.loadedAccountsDataSizeLimit)
    if (config.heapSize !== null) writer.presentUint(4, config.heapSize)
  })
}

const fields = createWireFields()
const SIGNATURE_BYTES = 64
const KEY_BYTES = 32
/** Tags and lengths of an instruction or a lookup. */
const TAG_BYTES = 6

/** As `writeTransaction`, directly from the wire form of a valid transaction that has wire fields (`hasWireFields`). */
export function writeWireTransaction(writer: ProtobufWriter, wire: Uint8Array): void {
  locateFields(wire, fields)
  const { signatures, signaturesAt } = fields
  const messageAt = signaturesAt + signatures * SIGNATURE_BYTES
  for (let at = signaturesAt; at < messageAt; at += SIGNATURE_BYTES)
    writer.presentRange(1, wire, at, at + SIGNATURE_BYTES)
  const begun = writer.begin(2, wire.length - messageAt)
  writeWireMessage(writer, wire)
  writer.end(begun)
}

function writeWireMessage(writer: ProtobufWriter, wire: Uint8Array): void {
  const { headerAt, keysAt, blockhashAt, instructions, instructionsAt, isVersioned } = fields
  const header = writer.begin(1)
  for (let i = 0; i < 3; i++) writer.uint(1 + i, wire[headerAt + i] as number)
  writer.end(header)
  for (let at = keysAt; at < blockhashAt; at += KEY_BYTES) writer.presentRange(2, wire, at, at + KEY_BYTES)
  writer.presentRange(3, wire, blockhashAt, blockhashAt + KEY_BYTES)
  let at = instructionsAt
  for (let left = instructions; left > 0; left--) at = writeWireInstruction(writer, wire, at)
  writer.bool(5, isVersioned)
  if (isVersioned) writeWireLookups(writer, wire, at)
}

/** Returns where the instruction ends. */
function writeWireInstruction(writer: ProtobufWriter, wire: Uint8Array, at: number): number {
  const accounts = readCompactU16(wire, at + 1)
  const accountsAt = at + 1 + (accounts & 3)
  const accountsEnd = accountsAt + (accounts >> 2)
  const data = readCompactU16(wire, accountsEnd)
  const dataAt = accountsEnd + (data & 3)
  const end = dataAt + (data >> 2)
  const begun = writer.begin(4, end - accountsAt + TAG_BYTES)
  writer.uint(1, wire[at] as number)
  writer.range(2, wire, accountsAt, accountsEnd)
  writer.range(3, wire, dataAt, end)
  writer.end(begun)
  return end
}

function writeWireLookups(writer: ProtobufWriter, wire: Uint8Array, lookupsAt: number): void {
  const lookups = readCompactU16(wire, lookupsAt)
  let at = lookupsAt + (lookups & 3)
  for (let left = lookups >> 2; left > 0; left--) {
    const keyEnd = at + KEY_BYTES
    const writable = readCompactU16(wire, keyEnd)
    const writableAt = keyEnd + (writable & 3)
    const writableEnd = writableAt + (writable >> 2)
    const readonly = readCompactU16(wire, writableEnd)
    const readonlyAt = writableEnd + (readonly & 3)
    const end = readonlyAt + (readonly >> 2)
    const begun = writer.begin(6, end - at + TAG_BYTES)
    writer.range(1, wire, at, keyEnd)
    writer.range(2, wire, writableAt, writableEnd)
    writer.range(3, wire, readonlyAt, end)
    writer.end(begun)
    at = end
  }
}
