import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  isJsonSpace,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../core/json-bytes.ts'
import type { RpcCall } from '../../solana/json/json-rpc.ts'
import { isFastPathId } from './request.ts'

/** A call that is forwarded as it was written; its text is ASCII, one byte per character. */
export type FastPathCall = { readonly call: RpcCall & { readonly id: string }; readonly text: string }

const ZERO = 0x30
const NINE = 0x39
const BEYOND_ASCII = 0x80
/** Deeper params, longer numbers and longer ids are left to `readRpcBody`. */
const DEPTH_MAX = 8
const DIGITS_MAX = 15

const MEMBERS = {
  jsonrpc: Buffer.from('"jsonrpc"'),
  id: Buffer.from('"id"'),
  method: Buffer.from('"method"'),
  params: Buffer.from('"params"'),
}
const VERSION = Buffer.from('"2.0"')
const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')
const NULL = Buffer.from('null')

/**
 * Reads the form that nearly all bodies have, straight from the bytes: one call with known members, each at most once, an id that every
 * node accepts, ASCII without escapes. Returns undefined for every other body, which `readRpcBody` then reads as JSON; a body accepted here
 * has the same meaning there. The scan only finds offsets; strings are created once the whole body is valid.
 */
export function readFastPathCall(bytes: Buffer): FastPathCall | undefined {
  const from = spaceEnd(bytes, 0)
  if (bytes[from] !== OPEN_BRACE) return undefined
  let version = 0
  let idFrom = 0
  let idTo = 0
  let methodFrom = 0
  let methodTo = 0
  let paramsFrom = 0
  let paramsTo = 0
  let at = from
  do {
    const nameFrom = spaceEnd(bytes, at + 1)
    if (isAt(bytes, nameFrom, MEMBERS.jsonrpc)) {
      if (version !== 0) return undefined
      version = valueFrom(bytes, nameFrom + MEMBERS.jsonrpc.length)
      if (version === -1 || !isAt(bytes, version, VERSION)) return undefined
      at = version + VERSION.length
    } else if (isAt(bytes, nameFrom, MEMBERS.id)) {
      if (idFrom !== 0) return undefined
      idFrom = valueFrom(bytes, nameFrom + MEMBERS.id.length)
      if (idFrom === -1) return undefined
      at = bytes[idFrom] === QUOTE ? stringEnd(bytes, idFrom) : digitsEnd(bytes, idFrom)
      idTo = at
    } else if (isAt(bytes, nameFrom, MEMBERS.method)) {
      if (methodFrom !== 0) return undefined
      methodFrom = valueFrom(bytes, nameFrom + MEMBERS.method.length)
      if (methodFrom === -1) return undefined
      at = stringEnd(bytes, methodFrom)
      methodTo = at
    } else if (isAt(bytes, nameFrom, MEMBERS.params)) {
      if (paramsFrom !== 0) return undefined
      paramsFrom = valueFrom(bytes, nameFrom + MEMBERS.params.length)
      if (paramsFrom === -1) return undefined
      const opening = bytes[paramsFrom]
      if (opening !== OPEN_BRACKET && opening !== OPEN_BRACE) return undefined
      at = valueEnd(bytes, paramsFrom, 0)
      paramsTo = at
    } else return undefined
    if (at === -1) return undefined
    at = spaceEnd(bytes, at)
  } while (bytes[at] === COMMA)
  const isComplete = bytes[at] === CLOSE_BRACE && spaceEnd(bytes, at + 1) === bytes.length
  if (!isComplete || version === 0 || idFrom === 0 || methodFrom === 0) return undefined
  const text = bytes.toString('latin1', from, at + 1)
  if (bytes[idFrom] === QUOTE && !isFastPathId(text.slice(idFrom - from, idTo - from))) return undefined
  const part = (partFrom: number, partTo: number) => text.slice(partFrom - from, partTo - from)
  return {
    call: {
      method: part(methodFrom + 1, methodTo - 1),
      paramsText: paramsFrom === 0 ? undefined : part(paramsFrom, paramsTo),
      id: part(idFrom, idTo),
    },
    text,
  }
}

/** The offset after the colon; -1 where there is none. */
function valueFrom(bytes: Buffer, nameTo: number): number {
  const colon = spaceEnd(bytes, nameTo)
  return bytes[colon] === COLON ? spaceEnd(bytes, colon + 1) : -1
}

/** The offset after the value at `from`; -1 for a value that the fast path does not read. */
function valueEnd(bytes: Buffer, from: number, depth: number): number {
  switch (bytes[from]) {
    case QUOTE:
      return stringEnd(bytes, from)
    case OPEN_BRACE:
      return depth === DEPTH_MAX ? -1 : objectEnd(bytes, from, depth + 1)
    case OPEN_BRACKET:
      return depth === DEPTH_MAX ? -1 : arrayEnd(bytes, from, depth + 1)
    case 0x74:
      return isAt(bytes, from, TRUE) ? from + TRUE.length : -1
    case 0x66:
      return isAt(bytes, from, FALSE) ? from + FALSE.length : -1
    case 0x6e:
      return isAt(bytes, from, NULL) ? from + NULL.length : -1
    default:
      return digitsEnd(bytes, from)
  }
}

function objectEnd(bytes: Buffer, from: number, depth: number): number {
  let at = spaceEnd(bytes, from + 1)
  if (bytes[at] === CLOSE_BRACE) return at + 1
  for (;;) {
    const nameTo = stringEnd(bytes, at)
    const value = nameTo === -1 ? -1 : valueFrom(bytes, nameTo)
    const end = value === -1 ? -1 : valueEnd(bytes, value, depth)
    if (end === -1) return -1
    at = spaceEnd(bytes, end)
    if (bytes[at] === CLOSE_BRACE) return at + 1
    if (bytes[at] !== COMMA) return -1
    at = spaceEnd(bytes, at + 1)
  }
}

function arrayEnd(bytes: Buffer, from: number, depth: number): number {
  let at = spaceEnd(bytes, from + 1)
  if (bytes[at] === CLOSE_BRACKET) return at + 1
  for (;;) {
    const end = valueEnd(bytes, at, depth)
    if (end === -1) return -1
    at = spaceEnd(bytes, end)
    if (bytes[at] === CLOSE_BRACKET) return at + 1
    if (bytes[at] !== COMMA) return -1
    at = spaceEnd(bytes, at + 1)
  }
}

function stringEnd(bytes: Buffer, from: number): number {
  if (bytes[from] !== QUOTE) return -1
  for (let at = from + 1; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte === QUOTE) return at + 1
    if (byte < 0x20 || byte >= BEYOND_ASCII || byte === BACKSLASH) return -1
  }
  return -1
}

/** The offset after an unsigned integer. The caller checks what follows it. */
function digitsEnd(bytes: Buffer, from: number): number {
  let at = from
  while (at < bytes.length && (bytes[at] as number) >= ZERO && (bytes[at] as number) <= NINE) at += 1
  const hasLeadingZero = bytes[from] === ZERO && at - from > 1
  return at === from || hasLeadingZero || at - from > DIGITS_MAX ? -1 : at
}

function spaceEnd(bytes: Buffer, from: number): number {
  let at = from
  while (at < bytes.length && isJsonSpace(bytes[at] as number)) at += 1
  return at
}

function isAt(bytes: Buffer, from: number, expected: Buffer): boolean {
  if (from + expected.length > bytes.length) return false
  for (let at = 0; at < expected.length; at++) if (bytes[from + at] !== expected[at]) return false
  return true
}
