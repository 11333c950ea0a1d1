import { readCompactU16 } from './compact-u16.ts'
import {
  type AddressTableLookup,
  headerFits,
  INSTRUCTIONS_MAX,
  type ParsedInstruction,
  SIGNATURES_MAX,
  type TransactionFault,
  type TransactionLimits,
  type TransactionRead,
  viewOf,
  viewsOf,
} from './types.ts'

/** Signatures first, then the message; in v0 the message begins with 0x80 and ends with the lookups. */
export function readLegacyOrV0(bytes: Uint8Array, offset: number, limits: TransactionLimits): TransactionRead {
  // Bytes above the size limit are not read, so reaching the end means `too-large` when the input is longer.
  const end = Math.min(bytes.length, offset + limits.transactionBytesMax)
  const short: TransactionFault = end < bytes.length ? 'too-large' : 'truncated'

  const signatureCount = bytes[offset] as number
  if (signatureCount < 1 || signatureCount > SIGNATURES_MAX) return 'signature-count'
  const messageAt = offset + 1 + signatureCount * 64
  let at = messageAt
  if (at >= end) return short
  const prefix = bytes[at] as number
  const isV0 = prefix >= 0x80
  if (isV0 && prefix !== 0x80) return 'version-unsupported'
  if (isV0) at++

  if (at + 3 > end) return short
  const header = {
    numRequiredSignatures: bytes[at] as number,
    numReadonlySigned: bytes[at + 1] as number,
    numReadonlyUnsigned: bytes[at + 2] as number,
  }
  at += 3
  if (header.numRequiredSignatures !== signatureCount) return 'signature-count'

  const keyCount = readCompactU16(bytes, at)
  if (keyCount < 0) return lengthFault(bytes, at, end, short)
  const keys = keyCount >> 2
  at += keyCount & 3
  if (keys > limits.accountLocksMax) return 'too-many-accounts'
  if (!headerFits(header, keys)) return 'header-counts'
  const keysAt = at
  at += keys * 32
  const blockhashAt = at
  at += 32
  if (at > end) return short

  const instructionCount = readCompactU16(bytes, at)
  if (instructionCount < 0) return lengthFault(bytes, at, end, short)
  at += instructionCount & 3
  if (instructionCount >> 2 > INSTRUCTIONS_MAX) return 'too-many-instructions'
  const instructions: ParsedInstruction[] = []
  let highestIndex = -1
  for (let left = instructionCount >> 2; left > 0; left--) {
    const programIdIndex = bytes[at++] as number
    const accountCount = readCompactU16(bytes, at)
    if (accountCount < 0) return lengthFault(bytes, at, end, short)
    const accountsAt = at + (accountCount & 3)
    const accountsEnd = accountsAt + (accountCount >> 2)
    const dataLength = readCompactU16(bytes, accountsEnd)
    if (dataLength < 0) return lengthFault(bytes, accountsEnd, end, short)
    const dataAt = accountsEnd + (dataLength & 3)
    at = dataAt + (dataLength >> 2)
    if (at > end) return short
    // A program id is never the fee payer and never a key from a lookup table.
    if (programIdIndex === 0 || programIdIndex >= keys) return 'program-index'
    for (let i = accountsAt; i < accountsEnd; i++) {
      if ((bytes[i] as number) > highestIndex) highestIndex = bytes[i] as number
    }
    instructions.push({
      programIdIndex,
      accounts: viewOf(bytes, accountsAt, accountsEnd),
      data: viewOf(bytes, dataAt, at),
    })
  }

  const addressTableLookups: AddressTableLookup[] = []
  let accounts = keys
  if (isV0) {
    const lookupCount = readCompactU16(bytes, at)
    if (lookupCount < 0) return lengthFault(bytes, at, end, short)
    at += lookupCount & 3
    for (let left = lookupCount >> 2; left > 0; left--) {
      const keyAt = at
      const writable = readCompactU16(bytes, keyAt + 32)
      if (writable < 0) return lengthFault(bytes, keyAt + 32, end, short)
      const writableAt = keyAt + 32 + (writable & 3)
      const writableEnd = writableAt + (writable >> 2)
      const readonly = readCompactU16(bytes, writableEnd)
      if (readonly < 0) return lengthFault(bytes, writableEnd, end, short)
      const readonlyAt = writableEnd + (readonly & 3)
      at = readonlyAt + (readonly >> 2)
      if (at > end) return short
      const loaded = (writable >> 2) + (readonly >> 2)
      if (loaded === 0) return 'empty-lookup'
      accounts += loaded
      if (accounts > limits.accountLocksMax) return 'too-many-accounts'
      addressTableLookups.push({
        accountKey: viewOf(bytes, keyAt, keyAt + 32),
        writableIndexes: viewOf(bytes, writableAt, writableEnd),
        readonlyIndexes: viewOf(bytes, readonlyAt, at),
      })
    }
  }
  if (at > end) return short
  if (highestIndex >= accounts) return 'account-index'

  return {
    version: isV0 ? 0 : 'legacy',
    signatures: viewsOf(bytes, offset + 1, signatureCount, 64),
    message: viewOf(bytes, messageAt, at),
    header,
    staticKeys: viewsOf(bytes, keysAt, keys, 32),
    recentBlockhash: viewOf(bytes, blockhashAt, blockhashAt + 32),
    instructions,
    addressTableLookups,
    config: null,
    wireLength: at - offset,
  }
}

/** Why a length is invalid: it is truncated, or not in its shortest form. */
function lengthFault(bytes: Uint8Array, at: number, end: number, short: TransactionFault): TransactionFault {
  let last = at
  while (last < at + 2 && last < end && (bytes[last] as number) >= 0x80) last++
  return last >= end ? short : 'length-not-canonical'
}
