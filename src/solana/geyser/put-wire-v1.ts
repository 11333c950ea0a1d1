import type { WireFields } from '../transaction/wire-fields.ts'
import { listBytes, putInstruction, uintBytes } from './put-fields.ts'
import { putVarint, putVarint64, varint64Bytes, varintBytes } from './varint.ts'

// What a transaction of the format v1 (SIMD-0385) has in another form than the others: instructions and config.

const INSTRUCTION_HEAD_BYTES = 4
/** Bits of the config mask: both halves of the fee, then one for each field of 32 bits. */
const FEE = 0b11
const FEE_TAG = 1 << 3
const VALUES = [
  { bit: 0b100, tag: 2 << 3 },
  { bit: 0b1000, tag: 3 << 3 },
  { bit: 0b10000, tag: 4 << 3 },
] as const

export function measureV1Instructions(wire: Uint8Array, { instructions, instructionsAt }: WireFields): number {
  let bytes = 0
  for (let i = 0, head = instructionsAt; i < instructions; i++, head += INSTRUCTION_HEAD_BYTES) {
    const instruction =
      uintBytes(wire[head] as number) + listBytes(wire[head + 1] as number) + listBytes(dataBytes(wire, head))
    bytes += 1 + varintBytes(instruction) + instruction
  }
  return bytes
}

export function putV1Instructions(wire: Uint8Array, fields: WireFields, target: Uint8Array, start: number): number {
  const { instructions, instructionsAt } = fields
  let at = start
  let from = instructionsAt + INSTRUCTION_HEAD_BYTES * instructions
  for (let i = 0, head = instructionsAt; i < instructions; i++, head += INSTRUCTION_HEAD_BYTES) {
    const dataAt = from + (wire[head + 1] as number)
    const dataEnd = dataAt + dataBytes(wire, head)
    at = putInstruction(target, at, wire[head] as number, wire, from, dataAt, dataAt, dataEnd)
    from = dataEnd
  }
  return at
}

/** The length of the message of the config, below 128. */
export function measureConfig(wire: Uint8Array, { configMask, configAt }: WireFields): number {
  let bytes = 0
  let from = configAt
  if ((configMask & FEE) === FEE) {
    bytes += 1 + varint64Bytes(readU32(wire, from), readU32(wire, from + 4))
    from += 8
  }
  for (const { bit } of VALUES) {
    if ((configMask & bit) === 0) continue
    bytes += 1 + varintBytes(readU32(wire, from))
    from += 4
  }
  return bytes
}

/** The fields of the config that are present, also those that are zero. */
export function putConfig(
  wire: Uint8Array,
  { configMask, configAt }: WireFields,
  target: Uint8Array,
  start: number,
): number {
  let at = start
  let from = configAt
  if ((configMask & FEE) === FEE) {
    target[at++] = FEE_TAG
    at = putVarint64(target, at, readU32(wire, from), readU32(wire, from + 4))
    from += 8
  }
  for (const { bit, tag } of VALUES) {
    if ((configMask & bit) === 0) continue
    target[at++] = tag
    at = putVarint(target, at, readU32(wire, from))
    from += 4
  }
  return at
}

function dataBytes(wire: Uint8Array, head: number): number {
  return (wire[head + 2] as number) | ((wire[head + 3] as number) << 8)
}

function readU32(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] as number) | ((bytes[at + 1] as number) << 8)
  return (low | ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24)) >>> 0
}
