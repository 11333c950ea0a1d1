import { copyBytes } from '../../core/copy-bytes.ts'
import { putVarint, varintBytes } from './varint.ts'

// Single fields with a tag of one byte. Each function writes one to memory that has room for it, and returns where it ends.

const KEY_BYTES = 32
const SIGNATURE_BYTES = 64
/** With tag and length. */
export const SIGNATURE_FIELD_BYTES = 2 + SIGNATURE_BYTES
export const KEY_FIELD_BYTES = 2 + KEY_BYTES
/** Copying so few bytes one by one takes less time than a call. */
const LOOP_BYTES_MAX = 64

/** A field of 32 bytes. */
export function putKey(target: Uint8Array, at: number, tag: number, source: Uint8Array, from: number): number {
  target[at] = tag
  target[at + 1] = KEY_BYTES
  for (let i = 0; i < KEY_BYTES; i++) target[at + 2 + i] = source[from + i] as number
  return at + KEY_FIELD_BYTES
}

/** A field of 64 bytes. */
export function putSignature(target: Uint8Array, at: number, tag: number, source: Uint8Array, from: number): number {
  target[at] = tag
  target[at + 1] = SIGNATURE_BYTES
  for (let i = 0; i < SIGNATURE_BYTES; i++) target[at + 2 + i] = source[from + i] as number
  return at + SIGNATURE_FIELD_BYTES
}

/** A field of bytes, without those of an empty one. */
export function putList(
  target: Uint8Array,
  start: number,
  tag: number,
  source: Uint8Array,
  from: number,
  to: number,
): number {
  if (to === from) return start
  target[start] = tag
  let at = putVarint(target, start + 1, to - from)
  if (to - from > LOOP_BYTES_MAX) {
    copyBytes(source, from, to, target, at)
    return at + to - from
  }
  for (let i = from; i < to; i++) target[at++] = source[i] as number
  return at
}

const INSTRUCTION = (4 << 3) | 2
const PROGRAM_INDEX = 1 << 3
const ACCOUNTS = (2 << 3) | 2
const DATA = (3 << 3) | 2

/** An instruction of a message; its accounts and its data are parts of the transaction in wire form. */
export function putInstruction(
  target: Uint8Array,
  start: number,
  program: number,
  wire: Uint8Array,
  accountsAt: number,
  accountsEnd: number,
  dataAt: number,
  dataEnd: number,
): number {
  target[start] = INSTRUCTION
  const bytes = uintBytes(program) + listBytes(accountsEnd - accountsAt) + listBytes(dataEnd - dataAt)
  let at = putVarint(target, start + 1, bytes)
  at = putUint(target, at, PROGRAM_INDEX, program)
  at = putList(target, at, ACCOUNTS, wire, accountsAt, accountsEnd)
  return putList(target, at, DATA, wire, dataAt, dataEnd)
}

/** A field of a byte, without that of zero. */
export function putUint(target: Uint8Array, at: number, tag: number, value: number): number {
  if (value === 0) return at
  target[at] = tag
  return putVarint(target, at + 1, value)
}

/** The bytes that `putList` writes. */
export function listBytes(length: number): number {
  return length === 0 ? 0 : 1 + varintBytes(length) + length
}

/** The bytes of a field whose value is a byte. */
export function uintBytes(value: number): number {
  return value === 0 ? 0 : value < 128 ? 2 : 3
}
