import { Buffer } from 'node:buffer'
import { decodeBase58 } from '../crypto/base58.ts'
import type { ParsedTransaction } from './types.ts'

const COMPUTE_BUDGET = decodeBase58('ComputeBudget111111111111111111111111111111')
const SET_UNIT_LIMIT = 2
const SET_UNIT_PRICE = 3
const LAMPORTS_PER_SIGNATURE = 5000n
const UNITS_MAX = 1_400_000n
const MICRO_LAMPORTS = 1_000_000n

/**
 * A lower bound of the fee that the payer is charged: the fee for the signatures, and the priority fee when the transaction sets both the
 * compute unit price and the compute unit limit. Precompile signatures and the default compute unit limit are not counted.
 */
export function feeFloor(transaction: ParsedTransaction): bigint {
  const { header, version, config } = transaction
  const base = LAMPORTS_PER_SIGNATURE * BigInt(header.numRequiredSignatures)
  return base + (version === 1 ? (config?.priorityFeeLamports ?? 0n) : statedPriorityFee(transaction))
}

function statedPriorityFee({ instructions, staticKeys }: ParsedTransaction): bigint {
  let unitLimit = 0n
  let unitPrice = 0n
  for (const { programIdIndex, data } of instructions) {
    if (Buffer.compare(staticKeys[programIdIndex] as Uint8Array, COMPUTE_BUDGET) !== 0) continue
    const view = new DataView(data.buffer, data.byteOffset, data.length)
    if (data[0] === SET_UNIT_LIMIT && data.length >= 5) unitLimit = BigInt(view.getUint32(1, true))
    else if (data[0] === SET_UNIT_PRICE && data.length >= 9) unitPrice = view.getBigUint64(1, true)
  }
  const units = unitLimit < UNITS_MAX ? unitLimit : UNITS_MAX
  return (unitPrice * units + MICRO_LAMPORTS - 1n) / MICRO_LAMPORTS
}
