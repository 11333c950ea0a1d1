import { readCompactU16 } from './compact-u16.ts'
import { type AddressTableLookup, FORMAT_LIMITS, INSTRUCTIONS_MAX, SIGNATURES_MAX, viewOf } from './types.ts'
import { readV1 } from './v1.ts'

/** A valid transaction inside a batch, as offsets. Views of what is needed are made on demand: `readTransaction` makes one for every key. */
export class ScannedTransaction {
  readonly #batch: Uint8Array
  /** Where it begins in the batch. */
  readonly at: number
  readonly wireLength: number
  readonly #signatureAt: number
  readonly #lookups: number
  readonly #lookupsAt: number

  constructor(batch: Uint8Array, at: number, to: number, signatureAt: number, lookups = 0, lookupsAt = 0) {
    this.#batch = batch
    this.at = at
    this.wireLength = to - at
    this.#signatureAt = signatureAt
    this.#lookups = lookups
    this.#lookupsAt = lookupsAt
  }

  /** The first one. */
  get signature(): Uint8Array {
    return viewOf(this.#batch, this.#signatureAt, this.#signatureAt + SIGNATURE_BYTES)
  }

  get addressTableLookups(): readonly AddressTableLookup[] {
    return this.#lookups === 0 ? NO_LOOKUPS : readLookups(this.#batch, this.#lookupsAt, this.#lookups)
  }
}

const NO_LOOKUPS: readonly AddressTableLookup[] = []
const SIGNATURE_BYTES = 64
const KEY_BYTES = 32
const V0 = 0x80
const V1 = 0x81

/** Accepts exactly what `readTransaction` accepts with FORMAT_LIMITS, and undefined for all else. */
export function scanTransaction(batch: Uint8Array, offset: number): ScannedTransaction | undefined {
  const first = batch[offset]
  if (first === undefined) return undefined
  if (first < V0) return scanLegacyOrV0(batch, offset, first)
  return first === V1 ? scanV1(batch, offset) : undefined
}

/** The rules of `readLegacyOrV0`. */
function scanLegacyOrV0(bytes: Uint8Array, offset: number, signatures: number): ScannedTransaction | undefined {
  const end = Math.min(bytes.length, offset + FORMAT_LIMITS.transactionBytesMax)
  if (signatures < 1 || signatures > SIGNATURES_MAX) return undefined
  let at = offset + 1 + signatures * SIGNATURE_BYTES
  if (at >= end) return undefined
  const prefix = bytes[at] as number
  const isV0 = prefix >= V0
  if (isV0 && prefix !== V0) return undefined
  if (isV0) at++

  if (at + 3 > end || bytes[at] !== signatures) return undefined
  const readonlySigned = bytes[at + 1] as number
  const readonlyUnsigned = bytes[at + 2] as number
  const keyCount = readCompactU16(bytes, at + 3)
  if (keyCount < 0) return undefined
  const keys = keyCount >> 2
  if (keys > FORMAT_LIMITS.accountLocksMax) return undefined
  if (readonlySigned >= signatures || signatures + readonlyUnsigned > keys) return undefined
  at += 3 + (keyCount & 3) + (keys + 1) * KEY_BYTES
  if (at > end) return undefined

  const instructionCount = readCompactU16(bytes, at)
  if (instructionCount < 0 || instructionCount >> 2 > INSTRUCTIONS_MAX) return undefined
  at += instructionCount & 3
  let highestIndex = -1
  for (let left = instructionCount >> 2; left > 0; left--) {
    const programIdIndex = bytes[at++] as number
    const accountCount = readCompactU16(bytes, at)
    if (accountCount < 0) return undefined
    const accountsAt = at + (accountCount & 3)
    const accountsEnd = accountsAt + (accountCount >> 2)
    const dataLength = readCompactU16(bytes, accountsEnd)
    if (dataLength < 0) return undefined
    at = accountsEnd + (dataLength & 3) + (dataLength >> 2)
    if (at > end || programIdIndex === 0 || programIdIndex >= keys) return undefined
    for (let i = accountsAt; i < accountsEnd; i++) {
      if ((bytes[i] as number) > highestIndex) highestIndex = bytes[i] as number
    }
  }
  if (isV0) return scanLookups(bytes, offset, at, { end, keys, highestIndex })
  if (at > end || highestIndex >= keys) return undefined
  return new ScannedTransaction(bytes, offset, at, offset + 1)
}

function scanLookups(
  bytes: Uint8Array,
  offset: number,
  lookupsAt: number,
  { end, keys, highestIndex }: { readonly end: number; readonly keys: number; readonly highestIndex: number },
): ScannedTransaction | undefined {
  const lookupCount = readCompactU16(bytes, lookupsAt)
  if (lookupCount < 0) return undefined
  const firstAt = lookupsAt + (lookupCount & 3)
  let at = firstAt
  let accounts = keys
  for (let left = lookupCount >> 2; left > 0; left--) {
    const writable = readCompactU16(bytes, at + KEY_BYTES)
    if (writable < 0) return undefined
    const writableEnd = at + KEY_BYTES + (writable & 3) + (writable >> 2)
    const readonly = readCompactU16(bytes, writableEnd)
    if (readonly < 0) return undefined
    at = writableEnd + (readonly & 3) + (readonly >> 2)
    const loaded = (writable >> 2) + (readonly >> 2)
    accounts += loaded
    if (at > end || loaded === 0 || accounts > FORMAT_LIMITS.accountLocksMax) return undefined
  }
  if (at > end || highestIndex >= accounts) return undefined
  return new ScannedTransaction(bytes, offset, at, offset + 1, lookupCount >> 2, firstAt)
}

/** The lookups of a transaction that was accepted. */
function readLookups(bytes: Uint8Array, lookupsAt: number, count: number): AddressTableLookup[] {
  const lookups: AddressTableLookup[] = []
  let at = lookupsAt
  while (lookups.length < count) {
    const keyEnd = at + KEY_BYTES
    const writable = readCompactU16(bytes, keyEnd)
    const writableAt = keyEnd + (writable & 3)
    const writableEnd = writableAt + (writable >> 2)
    const readonly = readCompactU16(bytes, writableEnd)
    const readonlyAt = writableEnd + (readonly & 3)
    const end = readonlyAt + (readonly >> 2)
    lookups.push({
      accountKey: viewOf(bytes, at, keyEnd),
      writableIndexes: viewOf(bytes, writableAt, writableEnd),
      readonlyIndexes: viewOf(bytes, readonlyAt, end),
    })
    at = end
  }
  return lookups
}

/** Reads the transaction completely: there are few of v1 so far, and its reader checks more than lengths. */
function scanV1(bytes: Uint8Array, offset: number): ScannedTransaction | undefined {
  const read = readV1(bytes, offset, FORMAT_LIMITS)
  if (typeof read === 'string') return undefined
  const signature = read.signatures[0] as Uint8Array
  return new ScannedTransaction(bytes, offset, offset + read.wireLength, signature.byteOffset - bytes.byteOffset)
}
