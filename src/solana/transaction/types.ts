/** Types common to the three wire formats of a transaction: the parsed form, limits and faults. */

export type ParsedTransaction = {
  readonly version: 'legacy' | 0 | 1
  readonly signatures: readonly Uint8Array[]
  /** The signed bytes. */
  readonly message: Uint8Array
  readonly header: TransactionHeader
  readonly staticKeys: readonly Uint8Array[]
  readonly recentBlockhash: Uint8Array
  readonly instructions: readonly ParsedInstruction[]
  readonly addressTableLookups: readonly AddressTableLookup[]
  /** v1 only; null in the other formats. */
  readonly config: TransactionConfig | null
  readonly wireLength: number
}

export type TransactionHeader = {
  readonly numRequiredSignatures: number
  readonly numReadonlySigned: number
  readonly numReadonlyUnsigned: number
}

export type ParsedInstruction = {
  readonly programIdIndex: number
  readonly accounts: Uint8Array
  readonly data: Uint8Array
}

export type AddressTableLookup = {
  readonly accountKey: Uint8Array
  readonly writableIndexes: Uint8Array
  readonly readonlyIndexes: Uint8Array
}

/** Null for a value that the transaction does not set; SIMD-0385 defines the defaults. */
export type TransactionConfig = {
  readonly priorityFeeLamports: bigint | null
  readonly computeUnitLimit: number | null
  readonly loadedAccountsDataSizeLimit: number | null
  readonly heapSize: number | null
}

export type TransactionFault =
  | 'truncated'
  | 'too-large'
  | 'trailing-bytes'
  | 'length-not-canonical'
  | 'version-unsupported'
  | 'signature-count'
  | 'header-counts'
  | 'too-many-accounts'
  | 'duplicate-account'
  | 'too-many-instructions'
  | 'program-index'
  | 'account-index'
  | 'empty-lookup'
  | 'config-mask'
  | 'config-heap-size'

/** The result of parsing: the transaction, or the reason why it is invalid. */
export type TransactionRead = ParsedTransaction | TransactionFault

/** Limits that the chain has changed before. The larger known values are the defaults; a node refuses what exceeds its own. */
export type TransactionLimits = {
  /** Static and loaded keys together: a transaction locks each of them. */
  readonly accountLocksMax: number
  /** Wire bytes of the formats legacy and v0. */
  readonly transactionBytesMax: number
  /** Wire bytes of the format v1. */
  readonly transactionV1BytesMax: number
}

/** Legacy and v0: the payload of one packet, 1280 - 40 - 8. */
export const WIRE_BYTES_MAX = 1232
/** v1 (SIMD-0296, SIMD-0385). */
export const WIRE_BYTES_V1_MAX = 4096
export const SIGNATURES_MAX = 12

export const TRANSACTION_LIMITS: TransactionLimits = {
  // 64 before the feature increase_tx_account_lock_limit.
  accountLocksMax: 128,
  transactionBytesMax: WIRE_BYTES_MAX,
  transactionV1BytesMax: WIRE_BYTES_V1_MAX,
}

/** Keys that an instruction can refer to: an index is one byte. */
export const ACCOUNT_INDEXES = 256

/** What a node's sanitizer accepts: it counts the locks of a transaction later, after it has resolved the lookup tables. */
export const SANITIZE_LIMITS: TransactionLimits = { ...TRANSACTION_LIMITS, accountLocksMax: ACCOUNT_INDEXES }

/** For transactions that were accepted already, by the chain or by us: what the formats can express. */
export const FORMAT_LIMITS: TransactionLimits = {
  accountLocksMax: ACCOUNT_INDEXES,
  transactionBytesMax: 0xffff,
  transactionV1BytesMax: 0xffff,
}
/** SIMD-0160. */
export const INSTRUCTIONS_MAX = 64

/** A Uint8Array view, also when `bytes` is a Buffer. */
export function viewOf(bytes: Uint8Array, from: number, to: number): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset + from, to - from)
}

/** Views of `count` consecutive items of `size` bytes each. */
export function viewsOf(bytes: Uint8Array, from: number, count: number, size: number): Uint8Array[] {
  const views: Uint8Array[] = []
  for (let i = 0; i < count; i++) views.push(viewOf(bytes, from + i * size, from + (i + 1) * size))
  return views
}

export function headerFits(header: TransactionHeader, keyCount: number): boolean {
  return (
    header.numReadonlySigned < header.numRequiredSignatures &&
    header.numRequiredSignatures + header.numReadonlyUnsigned <= keyCount
  )
}

export function hasDuplicateKey(keys: readonly Uint8Array[]): boolean {
  for (let i = 1; i < keys.length; i++) {
    const key = keys[i] as Uint8Array
    for (let j = 0; j < i; j++) {
      const other = keys[j] as Uint8Array
      let at = 0
      while (at < 32 && key[at] === other[at]) at++
      if (at === 32) return true
    }
  }
  return false
}
