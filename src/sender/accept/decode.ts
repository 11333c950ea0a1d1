import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { isDecodeFault, parseTransaction, type TransactionFault } from '../../solana/transaction/transaction.ts'
import {
  type ParsedTransaction,
  TRANSACTION_LIMITS,
  type TransactionLimits,
  WIRE_BYTES_MAX,
} from '../../solana/transaction/types.ts'

export type Encoding = 'base64' | 'base58'

/** The wire bytes with the parsed transaction, and their base64 where they came in it. `message` has the wording of a Solana node. */
export type Decoded =
  | {
      readonly ok: true
      readonly wire: Uint8Array
      readonly transaction: ParsedTransaction
      readonly base64: string | undefined
    }
  | {
      readonly ok: false
      readonly fault: TransactionFault | 'encoding' | 'base64' | 'base58'
      readonly message: string
      /** The limit that the transaction exceeds. */
      readonly limit?: keyof TransactionLimits | 'base58CharsMax'
      readonly size?: number
    }

const TYPE = 'solana_transaction::versioned::VersionedTransaction'
/** The first byte of the format v1. */
const V1_PREFIX = 0x81
/** Base58 is accepted for 1232 bytes, as by nodes: decoding takes time by the square of the length. */
const BASE58_CHARS_MAX = 1683
const BASE58 = /^[1-9A-HJ-NP-Za-km-z]+$/

/** Without an encoding, tries base64 and then base58: hardly any text is a valid transaction in both. */
export function decodeText(
  text: string,
  encoding: Encoding | undefined,
  limits: TransactionLimits = TRANSACTION_LIMITS,
): Decoded {
  if (encoding === 'base64') return decodeBase64Text(text, limits)
  if (encoding === 'base58') return decodeBase58Text(text, limits)
  const first = decodeBase64Text(text, limits)
  if (first.ok) return first
  const second = decodeBase58Text(text, limits)
  // Every fourth base58 text is base64 too; a transaction in base64 has other characters as well.
  return second.ok || first.fault === 'base64' || BASE58.test(text) ? second : first
}

export function decodeWire(wire: Uint8Array, limits: TransactionLimits = TRANSACTION_LIMITS, base64?: string): Decoded {
  const parsed = parseTransaction(wire, limits)
  if (parsed.ok) return { ok: true, wire, transaction: parsed.transaction, base64 }
  const { reason } = parsed
  if (reason === 'too-large') {
    const limit = wire[0] === V1_PREFIX ? 'transactionV1BytesMax' : 'transactionBytesMax'
    const size = limits[limit]
    const message = `decoded ${TYPE} too large: ${wire.length} bytes (max: ${size} bytes, ${limit})`
    return { ok: false, fault: reason, message, limit, size }
  }
  if (reason === 'too-many-accounts') {
    const size = limits.accountLocksMax
    const message = `invalid transaction: it locks more than the ${size} accounts that accountLocksMax allows`
    return { ok: false, fault: reason, message, limit: 'accountLocksMax', size }
  }
  const message = isDecodeFault(reason)
    ? `failed to deserialize ${TYPE}: ${reason}`
    : 'invalid transaction: Transaction failed to sanitize accounts offsets correctly'
  return { ok: false, fault: reason, message }
}

/** Characters of the largest transaction in base64. */
export function base64CharsMax({ transactionBytesMax, transactionV1BytesMax }: TransactionLimits): number {
  return Math.ceil(Math.max(transactionBytesMax, transactionV1BytesMax) / 3) * 4
}

function decodeBase64Text(text: string, limits: TransactionLimits): Decoded {
  const charsMax = base64CharsMax(limits)
  if (text.length > charsMax) {
    const isV1Larger = limits.transactionV1BytesMax > limits.transactionBytesMax
    const limit = isV1Larger ? 'transactionV1BytesMax' : 'transactionBytesMax'
    const size = limits[limit]
    const message = `base64 encoded ${TYPE} too large: ${text.length} bytes (max: encoded/raw ${charsMax}/${size}, ${limit})`
    return { ok: false, fault: 'too-large', message, limit, size }
  }
  // Buffer skips invalid characters: only a text that equals its own re-encoding is valid canonical base64.
  const wire = Buffer.from(text, 'base64')
  if (text === '' || wire.toString('base64') !== text) return notIn('base64')
  return decodeWire(wire, limits, text)
}

function decodeBase58Text(text: string, limits: TransactionLimits): Decoded {
  if (text.length > BASE58_CHARS_MAX) {
    const message = `base58 encoded ${TYPE} too large: ${text.length} bytes (max: encoded/raw ${BASE58_CHARS_MAX}/${WIRE_BYTES_MAX}, base58CharsMax); send it in base64`
    return { ok: false, fault: 'too-large', message, limit: 'base58CharsMax', size: BASE58_CHARS_MAX }
  }
  try {
    return text === '' ? notIn('base58') : decodeWire(decodeBase58(text), limits)
  } catch {
    return notIn('base58')
  }
}

function notIn(encoding: Encoding): Decoded {
  return { ok: false, fault: encoding, message: `invalid ${encoding} encoding` }
}
