import {
  hasDuplicateKey,
  headerFits,
  INSTRUCTIONS_MAX,
  type ParsedInstruction,
  SIGNATURES_MAX,
  type TransactionConfig,
  type TransactionFault,
  type TransactionLimits,
  type TransactionRead,
  viewOf,
  viewsOf,
} from './types.ts'

const FIXED_BYTES = 42
const PRIORITY_FEE = 0b11
const COMPUTE_UNIT_LIMIT = 0b100
const LOADED_DATA_SIZE = 0b1000
const HEAP_SIZE = 0b10000
const KNOWN_BITS = 0b11111
const HEAP_BYTES_MIN = 32_768
const HEAP_BYTES_MAX = 262_144

/**
 * SIMD-0385: the message first, signatures last. 0x81, header (3), config mask (4), blockhash (32), instruction count, address count,
 * addresses, config values, instruction headers of 4 bytes, instruction payloads, signatures.
 */
export function readV1(bytes: Uint8Array, offset: number, limits: TransactionLimits): TransactionRead {
  const end = Math.min(bytes.length, offset + limits.transactionV1BytesMax)
  const short: TransactionFault = end < bytes.length ? 'too-large' : 'truncated'
  if (offset + FIXED_BYTES > end) return short

  const header = {
    numRequiredSignatures: bytes[offset + 1] as number,
    numReadonlySigned: bytes[offset + 2] as number,
    numReadonlyUnsigned: bytes[offset + 3] as number,
  }
  const mask = readU32(bytes, offset + 4)
  const instructionCount = bytes[offset + 40] as number
  const keys = bytes[offset + 41] as number
  if (header.numRequiredSignatures < 1 || header.numRequiredSignatures > SIGNATURES_MAX) return 'signature-count'
  if (mask > KNOWN_BITS || (mask & PRIORITY_FEE) === 0b01 || (mask & PRIORITY_FEE) === 0b10) return 'config-mask'
  if (instructionCount > INSTRUCTIONS_MAX) return 'too-many-instructions'
  if (keys > limits.accountLocksMax) return 'too-many-accounts'
  if (!headerFits(header, keys)) return 'header-counts'

  const configAt = offset + FIXED_BYTES + keys * 32
  let headAt = configAt
  for (let bits = mask; bits > 0; bits >>= 1) headAt += (bits & 1) * 4
  let at = headAt + instructionCount * 4
  if (at > end) return short
  const config = readConfig(bytes, configAt, mask)
  if (config.heapSize !== null && !isHeapSize(config.heapSize)) return 'config-heap-size'

  const instructions: ParsedInstruction[] = []
  for (; instructions.length < instructionCount; headAt += 4) {
    const programIdIndex = bytes[headAt] as number
    if (programIdIndex === 0 || programIdIndex >= keys) return 'program-index'
    const accountsAt = at
    const dataAt = accountsAt + (bytes[headAt + 1] as number)
    at = dataAt + ((bytes[headAt + 2] as number) | ((bytes[headAt + 3] as number) << 8))
    if (at > end) return short
    for (let i = accountsAt; i < dataAt; i++) {
      if ((bytes[i] as number) >= keys) return 'account-index'
    }
    instructions.push({ programIdIndex, accounts: viewOf(bytes, accountsAt, dataAt), data: viewOf(bytes, dataAt, at) })
  }

  const wireEnd = at + header.numRequiredSignatures * 64
  if (wireEnd > end) return short
  const staticKeys = viewsOf(bytes, offset + FIXED_BYTES, keys, 32)
  if (hasDuplicateKey(staticKeys)) return 'duplicate-account'
  return {
    version: 1,
    signatures: viewsOf(bytes, at, header.numRequiredSignatures, 64),
    message: viewOf(bytes, offset, at),
    header,
    staticKeys,
    recentBlockhash: viewOf(bytes, offset + 8, offset + 40),
    instructions,
    addressTableLookups: [],
    config,
    wireLength: wireEnd - offset,
  }
}

/** Values are in the order of their mask bits. */
function readConfig(bytes: Uint8Array, configAt: number, mask: number): TransactionConfig {
  let at = configAt
  const next = (bit: number): number | null => {
    if ((mask & bit) === 0) return null
    at += 4
    return readU32(bytes, at - 4)
  }
  const feeLow = next(0b01)
  const feeHigh = next(0b10)
  return {
    priorityFeeLamports: feeLow === null || feeHigh === null ? null : BigInt(feeLow) | (BigInt(feeHigh) << 32n),
    computeUnitLimit: next(COMPUTE_UNIT_LIMIT),
    loadedAccountsDataSizeLimit: next(LOADED_DATA_SIZE),
    heapSize: next(HEAP_SIZE),
  }
}

function isHeapSize(size: number): boolean {
  return size % 1024 === 0 && size >= HEAP_BYTES_MIN && size <= HEAP_BYTES_MAX
}

function readU32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)) >>>
    0
  )
}
