import { encodeBase58 } from '../../solana/crypto/base58.ts'
import type { ParsedInstruction, ParsedTransaction } from '../../solana/transaction/types.ts'
import {
  BPF_LOADER,
  BPF_LOADER_DEPRECATED,
  COMPUTE_BUDGET_PROGRAM,
  ED25519_PROGRAM,
  LOADER_V4,
  SECP256K1_PROGRAM,
  SECP256R1_PROGRAM,
  SYSTEM_PROGRAM,
  UPGRADEABLE_LOADER,
} from '../chain/addresses.ts'

/** The fee of a transaction. Half of the base fee is burned, the rest goes to the leader. */
export type Fee = { readonly base: bigint; readonly priority: bigint; readonly total: bigint }

export const LAMPORTS_PER_SIGNATURE = 5000n
const MICRO_LAMPORTS_PER_LAMPORT = 1_000_000n
/** Defaults of `compute-budget`: the units an instruction is counted with when the transaction sets no limit (SIMD-0170). */
const UNITS_PER_BUILTIN = 3_000
const UNITS_PER_INSTRUCTION = 200_000
const UNITS_MAX = 1_400_000

const PRECOMPILES = new Set([ED25519_PROGRAM, SECP256K1_PROGRAM, SECP256R1_PROGRAM])
/** Programs counted as built-in (`builtins-default-costs`); those migrated to on-chain programs are counted as any other. */
const BUILTINS = new Set([
  SYSTEM_PROGRAM,
  COMPUTE_BUDGET_PROGRAM,
  BPF_LOADER,
  BPF_LOADER_DEPRECATED,
  UPGRADEABLE_LOADER,
  LOADER_V4,
  ED25519_PROGRAM,
  SECP256K1_PROGRAM,
])

const SET_UNIT_LIMIT = 2
const SET_UNIT_PRICE = 3

export function feeOf(transaction: ParsedTransaction): Fee {
  let signatures = transaction.header.numRequiredSignatures
  let defaultUnits = 0
  let unitLimit: number | undefined
  let unitPrice = 0n
  for (const instruction of transaction.instructions) {
    const program = encodeBase58(transaction.staticKeys[instruction.programIdIndex] as Uint8Array)
    defaultUnits += BUILTINS.has(program) ? UNITS_PER_BUILTIN : UNITS_PER_INSTRUCTION
    if (PRECOMPILES.has(program)) signatures += instruction.data[0] ?? 0
    if (program !== COMPUTE_BUDGET_PROGRAM) continue
    unitLimit ??= readUnitLimit(instruction)
    unitPrice = readUnitPrice(instruction) ?? unitPrice
  }
  const base = LAMPORTS_PER_SIGNATURE * BigInt(signatures)
  const priority =
    transaction.version === 1
      ? (transaction.config?.priorityFeeLamports ?? 0n)
      : priorityFee(unitPrice, Math.min(unitLimit ?? defaultUnits, UNITS_MAX))
  return { base, priority, total: base + priority }
}

function priorityFee(microLamportsPerUnit: bigint, units: number): bigint {
  return (microLamportsPerUnit * BigInt(units) + MICRO_LAMPORTS_PER_LAMPORT - 1n) / MICRO_LAMPORTS_PER_LAMPORT
}

function readUnitLimit({ data }: ParsedInstruction): number | undefined {
  if (data[0] !== SET_UNIT_LIMIT || data.length < 5) return undefined
  return new DataView(data.buffer, data.byteOffset).getUint32(1, true)
}

function readUnitPrice({ data }: ParsedInstruction): bigint | undefined {
  if (data[0] !== SET_UNIT_PRICE || data.length < 9) return undefined
  return new DataView(data.buffer, data.byteOffset).getBigUint64(1, true)
}
