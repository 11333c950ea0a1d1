import { INSTRUCTION_ERRORS, TRANSACTION_ERRORS } from '../../solana/transaction/error.ts'
import type { TransactionError } from '../chain/model.ts'

/**
 * litesvm numbers its fieldless errors by index in its own lists: variants that carry a value are classes there and leave no gap, and
 * three variants have another index than in Solana (litesvm 1.4.1).
 */
const CARRY_A_VALUE = [
  'InstructionError',
  'DuplicateInstruction',
  'InsufficientFundsForRent',
  'ProgramExecutionTemporarilyRestricted',
  'Custom',
]

const fieldless = (names: readonly string[]): string[] => names.filter((name) => !CARRY_A_VALUE.includes(name))

/** Moves a name directly behind another one. */
function moveBehind(names: readonly string[], name: string, before: string): string[] {
  return names.filter((other) => other !== name).flatMap((other) => (other === before ? [other, name] : [other]))
}

const ENGINE_TRANSACTION_ERRORS = moveBehind(
  fieldless(TRANSACTION_ERRORS),
  'InvalidLoadedAccountsDataSizeLimit',
  'ResanitizationNeeded',
)
const ENGINE_INSTRUCTION_ERRORS = moveBehind(
  fieldless(INSTRUCTION_ERRORS),
  'BorshIoError',
  'BuiltinProgramsMustConsumeComputeUnits',
)

/** The members of litesvm's error values that are used; each value is a number or an instance of one of its classes. */
type EngineErrorObject = {
  readonly constructor: { readonly name: string }
  readonly index?: number
  readonly accountIndex?: number
  err?(): unknown
}

/** litesvm's error value in Solana's JSON form. */
export function toTransactionError(error: unknown): TransactionError {
  if (typeof error === 'number') return ENGINE_TRANSACTION_ERRORS[error] ?? 'SanitizeFailure'
  const object = error as EngineErrorObject
  switch (object.constructor.name) {
    case 'TransactionErrorInstructionError':
      return { InstructionError: [object.index, toInstructionError(object.err?.())] }
    case 'TransactionErrorDuplicateInstruction':
      return { DuplicateInstruction: object.index }
    case 'TransactionErrorInsufficientFundsForRent':
      return { InsufficientFundsForRent: { account_index: object.accountIndex } }
    case 'TransactionErrorProgramExecutionTemporarilyRestricted':
      return { ProgramExecutionTemporarilyRestricted: { account_index: object.accountIndex } }
    default:
      return 'SanitizeFailure'
  }
}

function toInstructionError(error: unknown): unknown {
  if (typeof error === 'number') return ENGINE_INSTRUCTION_ERRORS[error] ?? 'GenericError'
  const { code } = error as { readonly code?: number }
  return code === undefined ? 'BorshIoError' : { Custom: code }
}
