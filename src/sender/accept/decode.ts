import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { isDecodeFault, parseTransaction, type TransactionFault } from '../../solana/transaction/transaction.ts'
import { type ParsedTransaction, WIRE_BYTES_MAX, WIRE_BYTES_V1_MAX } from '../../solana/transaction/types.ts'

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
    }

const TYPE = 'solana_transaction::versioned::VersionedTransaction'
/** Characters of the largest transaction. Base58 is accepted for legacy and v0 sizes only. */
const BASE64_CHARS_MAX = Math.ceil(WIRE_BYTES_V1_MAX / 3) * 4
const BASE58_CHARS_MAX = 1683

/** Without an encoding, tries base64 and then base58: hardly any text is a valid transaction in both. */
export function decodeText(text: string, encoding: Encoding | undefined): Decoded {
  if (encoding === 'base64') return decodeBase64Text(text)
  if (encoding === 'base58') return decodeBase58Text(text)
  const first = decodeBase64Text(text)
  if (first.ok) return first
  const second = decodeBase58Text(text)
  // Reports the fault of base64 only if the text is base64 at all.
  return second.ok || first.fault === 'base64' ? second : first
}

export function decodeWire(wire: Uint8Array, base64?: string): Decoded {
  const parsed = parseTransaction(wire)
  if (parsed.ok) return { ok: true, wire, transaction: parsed.transaction, base64 }
  const { reason } = parsed
  if (reason === 'too-large') {
    return {
      ok: false,
      fault: reason,
      message: `decoded ${TYPE} too large: ${wire.length} bytes (max: ${limitOf(wire)} bytes)`,
    }
  }
  const message = isDecodeFault(reason)
    ? `failed to deserialize ${TYPE}: ${reason}`
    : 'invalid transaction: Transaction failed to sanitize accounts offsets correctly'
  return { ok: false, fault: reason, message }
}

function limitOf(wire: Uint8Array): number {
  return wire[0] === 0x81 ? WIRE_BYTES_V1_MAX : WIRE_BYTES_MAX
}

function decodeBase64Text(text: string): Decoded {
  if (text.length > BASE64_CHARS_MAX) return tooLong('base64', text.length, BASE64_CHARS_MAX)
  // Buffer skips invalid characters: only a text that equals its own re-encoding is valid canonical base64.
  const wire = Buffer.from(text, 'base64')
  if (text === '' || wire.toString('base64') !== text) return notIn('base64')
  return decodeWire(wire, text)
}

function decodeBase58Text(text: string): Decoded {
  if (text.length > BASE58_CHARS_MAX) return tooLong('base58', text.length, BASE58_CHARS_MAX)
  try {
    return text === '' ? notIn('base58') : decodeWire(decodeBase58(text))
  } catch {
    return notIn('base58')
  }
}

function notIn(encoding: Encoding): Decoded {
  return { ok: false, fault: encoding, message: `invalid ${encoding} encoding` }
}

function tooLong(encoding: Encoding, chars: number, charsMax: number): Decoded {
  return {
    ok: false,
    fault: 'too-large',
    message: `${encoding} encoded ${TYPE} too large: ${chars} bytes (max: encoded/raw ${charsMax}/${encoding === 'base64' ? WIRE_BYTES_V1_MAX : WIRE_BYTES_MAX})`,
  }
}
