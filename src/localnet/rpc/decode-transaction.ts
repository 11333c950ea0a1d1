import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { compactU16Length, writeCompactU16 } from '../../solana/transaction/compact-u16.ts'
import { isDecodeFault, parseTransaction, type TransactionFault } from '../../solana/transaction/transaction.ts'
import {
  type ParsedTransaction,
  SANITIZE_LIMITS,
  WIRE_BYTES_MAX,
  WIRE_BYTES_V1_MAX,
} from '../../solana/transaction/types.ts'
import { readBudget } from '../engine/compute-budget.ts'
import type { TransactionEncoding } from './encode-transaction.ts'
import { invalidParams, type RpcError } from './errors.ts'
import { type Measured, measureMessage, measureTransaction } from './measure-transaction.ts'
import { decodeBase64, describeBase58Fault } from './text-codecs.ts'
import { describeTransactionError } from './transaction-error-text.ts'

/** Names of the decoded types in Agave's error messages. */
const TRANSACTION_TYPE = 'solana_transaction::versioned::VersionedTransaction'
const MESSAGE_TYPE = 'solana_message::versions::VersionedMessage'

/** Maximum encoded lengths. Version 1 has no base58 form: its size exceeds the base58 limit. */
const BASE58_CHARS_MAX = 1683
const BASE64_CHARS_MAX = 1644
const BASE64_CHARS_V1_MAX = 5464
/** The first byte of a version 1 transaction, and so the first character of its base64. */
const V1_FIRST_BYTE = 0x81
const V1_BASE64_START = 'g'

const VERSION_BIT = 0x80

export type DecodedTransaction = { readonly wire: Uint8Array; readonly transaction: ParsedTransaction }

/** The transaction of sendTransaction and simulateTransaction. Throws -32602 with Agave's messages. */
export function decodeTransaction(text: string, encoding: TransactionEncoding): DecodedTransaction {
  const bytes = decodeText(text, encoding, TRANSACTION_TYPE)
  const wire = bytes[0] === V1_FIRST_BYTE ? bytes : cut(bytes, measureTransaction(bytes), TRANSACTION_TYPE)
  const parsed = parseTransaction(wire, SANITIZE_LIMITS)
  if (!parsed.ok) throw refuse(parsed.reason, TRANSACTION_TYPE, 'invalid transaction')
  const budget = readBudget(parsed.transaction)
  if (!budget.ok) throw invalidParams(`invalid transaction: ${describeTransactionError(budget.err)}`)
  return { wire, transaction: parsed.transaction }
}

/** The message of getFeeForMessage, as a transaction with empty signatures. */
export function decodeMessage(text: string): ParsedTransaction {
  const bytes = decodeText(text, 'base64', MESSAGE_TYPE)
  const message = bytes[0] === V1_FIRST_BYTE ? bytes : cut(bytes, measureMessage(bytes), MESSAGE_TYPE)
  const parsed = parseTransaction(withoutSignatures(message), SANITIZE_LIMITS)
  if (!parsed.ok) throw refuse(parsed.reason, MESSAGE_TYPE, 'invalid transaction message')
  return parsed.transaction
}

/** Trailing bytes are ignored. */
function cut(bytes: Uint8Array, measured: Measured, type: string): Uint8Array {
  if (!measured.ok) throw invalidParams(`failed to deserialize ${type}: ${measured.fault}`)
  return bytes.subarray(0, measured.length)
}

function decodeText(text: string, requested: TransactionEncoding, type: string): Uint8Array {
  const encoding = requested === 'binary' ? 'base58' : requested
  if (encoding !== 'base58' && encoding !== 'base64') {
    throw invalidParams(`unsupported encoding: ${encoding}. Supported encodings: base58, base64`)
  }
  const isV1 = encoding === 'base64' && text.startsWith(V1_BASE64_START)
  const charsMax = encoding === 'base58' ? BASE58_CHARS_MAX : isV1 ? BASE64_CHARS_V1_MAX : BASE64_CHARS_MAX
  const bytesMax = isV1 ? WIRE_BYTES_V1_MAX : WIRE_BYTES_MAX
  if (text.length > charsMax) {
    throw invalidParams(
      `${encoding} encoded ${type} too large: ${text.length} bytes (max: encoded/raw ${charsMax}/${bytesMax})`,
    )
  }
  const bytes = encoding === 'base58' ? fromBase58(text) : fromBase64(text)
  if (bytes.length > bytesMax && bytes[0] !== V1_FIRST_BYTE) {
    throw invalidParams(`decoded ${type} too large: ${bytes.length} bytes (max: ${bytesMax} bytes)`)
  }
  return bytes
}

function fromBase58(text: string): Uint8Array {
  try {
    return decodeBase58(text)
  } catch {
    throw invalidParams(`invalid base58 encoding: ${describeBase58Fault(text)}`)
  }
}

function fromBase64(text: string): Uint8Array {
  const decoded = decodeBase64(text)
  if (!decoded.ok) throw invalidParams(`invalid base64 encoding: ${decoded.fault}`)
  return decoded.bytes
}

/** A decode fault is possible only in version 1, which is not measured; other versions are well-formed at this point. */
function refuse(reason: TransactionFault, type: string, invalid: string): RpcError {
  if (!isDecodeFault(reason)) return invalidParams(`${invalid}: ${describeTransactionError('SanitizeFailure')}`)
  return invalidParams(`failed to deserialize ${type}: io error: failed to fill whole buffer`)
}

/** Adds the header's number of empty signatures before the message; after it in version 1. */
function withoutSignatures(message: Uint8Array): Uint8Array {
  const first = message[0] ?? 0
  const count = (first >= VERSION_BIT ? message[1] : first) ?? 0
  if (first === V1_FIRST_BYTE) {
    const wire = new Uint8Array(message.length + count * 64)
    wire.set(message)
    return wire
  }
  const head = compactU16Length(count) + count * 64
  const wire = new Uint8Array(head + message.length)
  writeCompactU16(wire, 0, count)
  wire.set(message, head)
  return wire
}
