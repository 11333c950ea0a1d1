import { Buffer } from 'node:buffer'
import { INSTRUCTION_ERROR_TEXTS, TRANSACTION_ERROR_TEXTS } from './error-variants.ts'

/** By bincode discriminant. */
export const TRANSACTION_ERRORS: readonly string[] = Object.keys(TRANSACTION_ERROR_TEXTS)
export const INSTRUCTION_ERRORS: readonly string[] = Object.keys(INSTRUCTION_ERROR_TEXTS)

/** A transaction error in its JSON form: a name, or an object with one name and its details. */
export type TransactionErrorJson = string | { readonly [name: string]: unknown }

/** The bincode form, as in geyser's `TransactionError.err`. Undefined for an unknown error. */
export function encodeTransactionError(error: TransactionErrorJson): Uint8Array | undefined {
  const [name, detail] = split(error)
  const variant = TRANSACTION_ERRORS.indexOf(name)
  if (variant < 0) return undefined
  switch (name) {
    case 'InstructionError': {
      const [index, inner] = Array.isArray(detail) ? detail : []
      const instructionError = isErrorJson(inner) ? encodeInstructionError(inner) : undefined
      if (!isU8(index) || !instructionError) return undefined
      return Buffer.concat([u32(variant), Buffer.from([index]), instructionError])
    }
    case 'DuplicateInstruction':
      return isU8(detail) ? Buffer.concat([u32(variant), Buffer.from([detail])]) : undefined
    case 'InsufficientFundsForRent':
    case 'ProgramExecutionTemporarilyRestricted': {
      const index = (detail as { account_index?: unknown } | undefined)?.account_index
      return isU8(index) ? Buffer.concat([u32(variant), Buffer.from([index])]) : undefined
    }
    default:
      return u32(variant)
  }
}

/** The JSON form of bincode bytes, or undefined when they are not a known error. */
export function decodeTransactionError(bytes: Uint8Array): TransactionErrorJson | undefined {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const name = view.length >= 4 ? TRANSACTION_ERRORS[view.readUInt32LE(0)] : undefined
  if (name === undefined) return undefined
  switch (name) {
    case 'InstructionError': {
      const inner = view.length >= 9 ? INSTRUCTION_ERRORS[view.readUInt32LE(5)] : undefined
      if (inner === undefined) return undefined
      if (inner !== 'Custom') return { InstructionError: [view[4], inner] }
      return view.length >= 13 ? { InstructionError: [view[4], { Custom: view.readUInt32LE(9) }] } : undefined
    }
    case 'DuplicateInstruction':
      return view.length >= 5 ? { DuplicateInstruction: view[4] } : undefined
    case 'InsufficientFundsForRent':
    case 'ProgramExecutionTemporarilyRestricted':
      return view.length >= 5 ? { [name]: { account_index: view[4] } } : undefined
    default:
      return name
  }
}

function encodeInstructionError(error: TransactionErrorJson): Uint8Array | undefined {
  const [name, detail] = split(error)
  const variant = INSTRUCTION_ERRORS.indexOf(name)
  if (variant < 0) return undefined
  if (name !== 'Custom') return u32(variant)
  return typeof detail === 'number' || typeof detail === 'bigint'
    ? Buffer.concat([u32(variant), u32(Number(detail))])
    : undefined
}

function split(error: TransactionErrorJson): [name: string, detail: unknown] {
  return typeof error === 'string' ? [error, undefined] : (Object.entries(error)[0] ?? ['', undefined])
}

function isErrorJson(value: unknown): value is TransactionErrorJson {
  return typeof value === 'string' || (typeof value === 'object' && value !== null)
}

function isU8(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 255
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
