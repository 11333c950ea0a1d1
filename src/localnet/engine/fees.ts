import { encodeBase58 } from '../../solana/crypto/base58.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'
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
import type { TransactionError } from '../chain/model.ts'
import { budgetFault, readBudget } from './compute-budget.ts'

/** The fee of a transaction. Half of the base fee is burned, the rest goes to the leader. */
export type Fee = { readonly base: bigint; readonly priority: bigint; readonly total: bigint }

/** Errors after the fee payer was validated: the fee is charged and the transaction lands (SIMD-0082); litesvm charges none. */
export const FEE_ONLY_ERRORS: ReadonlySet<TransactionError> = new Set([
  'ProgramAccountNotFound',
  'InvalidProgramForExecution',
  'MaxLoadedAccountsDataSizeExceeded',
])

export const LAMPORTS_PER_SIGNATURE = 5000n
const MICRO_LAMPORTS_PER_LAMPORT = 1_000_000n
const U64_MAX = 0xffffffffffffffffn
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

export function feeOf(transaction: ParsedTransaction): Fee {
  let signatures = transaction.header.numRequiredSignatures
  let defaultUnits = 0
  for (const instruction of transaction.instructions) {
    const program = encodeBase58(transaction.staticKeys[instruction.programIdIndex] as Uint8Array)
    defaultUnits += BUILTINS.has(program) ? UNITS_PER_BUILTIN : UNITS_PER_INSTRUCTION
    if (PRECOMPILES.has(program)) signatures += instruction.data[0] ?? 0
  }
  const base = LAMPORTS_PER_SIGNATURE * BigInt(signatures)
  const priority =
    transaction.version === 1 ? (transaction.config?.priorityFeeLamports ?? 0n) : priorityOf(transaction, defaultUnits)
  return { base, priority, total: saturate(base + priority) }
}

/** A transaction that cannot be executed with what it requests has no price. */
function priorityOf(transaction: ParsedTransaction, defaultUnits: number): bigint {
  const budget = readBudget(transaction)
  if (!budget.ok || budgetFault(transaction) !== undefined) return 0n
  const { unitLimit, unitPrice } = budget.requests
  return priorityFee(unitPrice ?? 0n, Math.min(unitLimit ?? defaultUnits, UNITS_MAX))
}

function priorityFee(microLamportsPerUnit: bigint, units: number): bigint {
  return saturate((microLamportsPerUnit * BigInt(units) + MICRO_LAMPORTS_PER_LAMPORT - 1n) / MICRO_LAMPORTS_PER_LAMPORT)
}

/** The runtime calculates fees in 64 bits. */
function saturate(lamports: bigint): bigint {
  return lamports > U64_MAX ? U64_MAX : lamports
}
