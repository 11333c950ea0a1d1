import { readCompactU16 } from '../transaction/compact-u16.ts'
import { createWireFields, locateFields, type WireFields } from '../transaction/wire-fields.ts'
import {
  KEY_FIELD_BYTES,
  listBytes,
  putInstruction,
  putKey,
  putList,
  putSignature,
  putUint,
  SIGNATURE_FIELD_BYTES,
  uintBytes,
} from './put-fields.ts'
import { measureConfig, measureV1Instructions, putConfig, putV1Instructions } from './put-wire-v1.ts'
import { putVarint, varintBytes } from './varint.ts'

// Field numbers: proto/solana-storage.proto. All of them are below 16, so that a tag takes one byte.

/** The fields of a transaction in wire form, with the lengths that it has as protobuf. */
export type MeasuredTransaction = WireFields & {
  /** Bytes of the message Transaction. */
  bytes: number
  /** Bytes of its field `message`. */
  messageBytes: number
  lookups: number
  lookupsAt: number
  configBytes: number
}

const LENGTH_DELIMITED = 2
const SIGNATURES = (1 << 3) | LENGTH_DELIMITED
const MESSAGE = (2 << 3) | LENGTH_DELIMITED
const HEADER = (1 << 3) | LENGTH_DELIMITED
const KEYS = (2 << 3) | LENGTH_DELIMITED
const BLOCKHASH = (3 << 3) | LENGTH_DELIMITED
const VERSIONED = 5 << 3
const LOOKUPS = (6 << 3) | LENGTH_DELIMITED
const CONFIG = (7 << 3) | LENGTH_DELIMITED
/** The fields of a lookup: writable and readonly indexes. */
const FIRST_LIST = (2 << 3) | LENGTH_DELIMITED
const SECOND_LIST = (3 << 3) | LENGTH_DELIMITED
const LOOKUP_KEY = (1 << 3) | LENGTH_DELIMITED

const SIGNATURE_BYTES = 64
const KEY_BYTES = 32

export function createMeasured(): MeasuredTransaction {
  return { ...createWireFields(), bytes: 0, messageBytes: 0, lookups: 0, lookupsAt: 0, configBytes: 0 }
}

/** Fills `measured`. The transaction must be one that `parseTransaction` accepts. */
export function measureTransaction(wire: Uint8Array, measured: MeasuredTransaction): void {
  locateFields(wire, measured)
  let bytes = 2 + headerBytes(wire, measured.headerAt) + KEY_FIELD_BYTES * (measured.keys + 1)
  if (measured.isVersioned) bytes += 2
  if (measured.isV1) {
    measured.configBytes = measureConfig(wire, measured)
    bytes += measureV1Instructions(wire, measured) + 2 + measured.configBytes
  } else bytes += measureInstructions(wire, measured)
  measured.messageBytes = bytes
  measured.bytes = SIGNATURE_FIELD_BYTES * measured.signatures + 1 + varintBytes(bytes) + bytes
}

/** With the lookups that follow the instructions. */
function measureInstructions(wire: Uint8Array, measured: MeasuredTransaction): number {
  let bytes = 0
  let at = measured.instructionsAt
  for (let left = measured.instructions; left > 0; left--) {
    const accounts = readCompactU16(wire, at + 1)
    const accountsEnd = at + 1 + (accounts & 3) + (accounts >> 2)
    const data = readCompactU16(wire, accountsEnd)
    const instruction = uintBytes(wire[at] as number) + listBytes(accounts >> 2) + listBytes(data >> 2)
    bytes += 1 + varintBytes(instruction) + instruction
    at = accountsEnd + (data & 3) + (data >> 2)
  }
  if (!measured.isVersioned) return bytes
  const lookups = readCompactU16(wire, at)
  measured.lookups = lookups >> 2
  measured.lookupsAt = at + (lookups & 3)
  return bytes + lookupsBytes(wire, measured)
}

function lookupsBytes(wire: Uint8Array, { lookups, lookupsAt }: MeasuredTransaction): number {
  let bytes = 0
  let at = lookupsAt
  for (let left = lookups; left > 0; left--) {
    const writable = readCompactU16(wire, at + KEY_BYTES)
    const writableEnd = at + KEY_BYTES + (writable & 3) + (writable >> 2)
    const readonly = readCompactU16(wire, writableEnd)
    const lookup = KEY_FIELD_BYTES + listBytes(writable >> 2) + listBytes(readonly >> 2)
    bytes += 1 + varintBytes(lookup) + lookup
    at = writableEnd + (readonly & 3) + (readonly >> 2)
  }
  return bytes
}

/**
 * Writes the fields of the message Transaction to `target`, which has room for `measured.bytes` bytes at `start`. Returns where they end. Lengths are known
 * before, so that nothing is checked or moved.
 */
export function putTransaction(
  wire: Uint8Array,
  measured: MeasuredTransaction,
  target: Uint8Array,
  start: number,
): number {
  const { signatures, headerAt, keysAt, keysEnd, blockhashAt, isVersioned, isV1 } = measured
  let at = start
  for (let i = 0, from = measured.signaturesAt; i < signatures; i++, from += SIGNATURE_BYTES)
    at = putSignature(target, at, SIGNATURES, wire, from)
  target[at++] = MESSAGE
  at = putVarint(target, at, measured.messageBytes)
  target[at++] = HEADER
  target[at++] = headerBytes(wire, headerAt)
  for (let i = 0; i < 3; i++) at = putUint(target, at, (1 + i) << 3, wire[headerAt + i] as number)
  for (let from = keysAt; from < keysEnd; from += KEY_BYTES) at = putKey(target, at, KEYS, wire, from)
  at = putKey(target, at, BLOCKHASH, wire, blockhashAt)
  at = isV1 ? putV1Instructions(wire, measured, target, at) : putInstructions(wire, measured, target, at)
  if (!isVersioned) return at
  target[at++] = VERSIONED
  target[at++] = 1
  if (!isV1) return putLookups(wire, measured, target, at)
  target[at++] = CONFIG
  target[at++] = measured.configBytes
  return putConfig(wire, measured, target, at)
}

function putInstructions(wire: Uint8Array, measured: MeasuredTransaction, target: Uint8Array, start: number): number {
  let at = start
  let from = measured.instructionsAt
  for (let left = measured.instructions; left > 0; left--) {
    const program = wire[from] as number
    const accounts = readCompactU16(wire, from + 1)
    const accountsAt = from + 1 + (accounts & 3)
    const accountsEnd = accountsAt + (accounts >> 2)
    const data = readCompactU16(wire, accountsEnd)
    const dataAt = accountsEnd + (data & 3)
    from = dataAt + (data >> 2)
    at = putInstruction(target, at, program, wire, accountsAt, accountsEnd, dataAt, from)
  }
  return at
}

function putLookups(wire: Uint8Array, measured: MeasuredTransaction, target: Uint8Array, start: number): number {
  let at = start
  let from = measured.lookupsAt
  for (let left = measured.lookups; left > 0; left--) {
    const writable = readCompactU16(wire, from + KEY_BYTES)
    const writableAt = from + KEY_BYTES + (writable & 3)
    const writableEnd = writableAt + (writable >> 2)
    const readonly = readCompactU16(wire, writableEnd)
    const readonlyAt = writableEnd + (readonly & 3)
    target[at++] = LOOKUPS
    at = putVarint(target, at, KEY_FIELD_BYTES + listBytes(writable >> 2) + listBytes(readonly >> 2))
    at = putKey(target, at, LOOKUP_KEY, wire, from)
    from = readonlyAt + (readonly >> 2)
    at = putList(target, at, FIRST_LIST, wire, writableAt, writableEnd)
    at = putList(target, at, SECOND_LIST, wire, readonlyAt, from)
  }
  return at
}

function headerBytes(wire: Uint8Array, at: number): number {
  return uintBytes(wire[at] as number) + uintBytes(wire[at + 1] as number) + uintBytes(wire[at + 2] as number)
}
