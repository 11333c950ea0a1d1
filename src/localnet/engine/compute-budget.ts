import { Buffer } from 'node:buffer'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'
import { COMPUTE_BUDGET_PROGRAM } from '../chain/addresses.ts'
import type { TransactionError } from '../chain/model.ts'

/** What the instructions of the Compute Budget program request. */
export type BudgetRequests = {
  readonly heapBytes: number | undefined
  readonly unitLimit: number | undefined
  /** In micro-lamports. */
  readonly unitPrice: bigint | undefined
  readonly loadedBytesMax: number | undefined
}

export type BudgetRead =
  | { readonly ok: true; readonly requests: BudgetRequests }
  | { readonly ok: false; readonly err: TransactionError }

const COMPUTE_BUDGET_KEY = decodeBase58(COMPUTE_BUDGET_PROGRAM)

/** `ComputeBudgetInstruction` by its first byte, with the length of its value. 0 was a request that is no longer accepted. */
const REQUESTS: Readonly<Record<number, { readonly name: keyof BudgetRequests; readonly bytes: 4 | 8 }>> = {
  1: { name: 'heapBytes', bytes: 4 },
  2: { name: 'unitLimit', bytes: 4 },
  3: { name: 'unitPrice', bytes: 8 },
  4: { name: 'loadedBytesMax', bytes: 4 },
}

const HEAP_BYTES_MIN = 32 * 1024
const HEAP_BYTES_MAX = 256 * 1024
const HEAP_STEP_BYTES = 1024

/**
 * A transaction with a malformed or repeated request is invalid before anything is known about its accounts (Agave reads the requests
 * in its sanitizer). Version 1 has a config instead.
 */
export function readBudget({ version, staticKeys, instructions }: ParsedTransaction): BudgetRead {
  const requests: { -readonly [name in keyof BudgetRequests]: number | bigint | undefined } = {
    heapBytes: undefined,
    unitLimit: undefined,
    unitPrice: undefined,
    loadedBytesMax: undefined,
  }
  if (version === 1) return { ok: true, requests: requests as BudgetRequests }
  for (const [index, { programIdIndex, data }] of instructions.entries()) {
    if (Buffer.compare(staticKeys[programIdIndex] as Uint8Array, COMPUTE_BUDGET_KEY) !== 0) continue
    const request = REQUESTS[data[0] ?? 0]
    // Bytes after the value are ignored.
    if (request === undefined || data.length <= request.bytes) return { ok: false, err: invalidData(index) }
    if (requests[request.name] !== undefined) return { ok: false, err: { DuplicateInstruction: index } }
    const view = new DataView(data.buffer, data.byteOffset, data.length)
    requests[request.name] = request.bytes === 4 ? view.getUint32(1, true) : view.getBigUint64(1, true)
  }
  return { ok: true, requests: requests as BudgetRequests }
}

/** Why a transaction cannot be executed with what it requests. It pays no fee. */
export function budgetFault(transaction: ParsedTransaction): TransactionError | undefined {
  const read = readBudget(transaction)
  if (!read.ok) return read.err
  const { heapBytes, loadedBytesMax } = read.requests
  if (heapBytes !== undefined && !isHeapSize(heapBytes)) return invalidData(indexOfHeapRequest(transaction))
  return loadedBytesMax === 0 ? 'InvalidLoadedAccountsDataSizeLimit' : undefined
}

function isHeapSize(bytes: number): boolean {
  return bytes >= HEAP_BYTES_MIN && bytes <= HEAP_BYTES_MAX && bytes % HEAP_STEP_BYTES === 0
}

function indexOfHeapRequest({ staticKeys, instructions }: ParsedTransaction): number {
  return instructions.findIndex(
    ({ programIdIndex, data }) =>
      data[0] === 1 && Buffer.compare(staticKeys[programIdIndex] as Uint8Array, COMPUTE_BUDGET_KEY) === 0,
  )
}

function invalidData(index: number): TransactionError {
  return { InstructionError: [index, 'InvalidInstructionData'] }
}
