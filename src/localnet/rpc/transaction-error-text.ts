import { INSTRUCTION_ERROR_TEXTS, TRANSACTION_ERROR_TEXTS } from '../../solana/transaction/error-variants.ts'
import type { TransactionError } from '../chain/model.ts'

/** The text of a transaction error (Display of `solana-transaction-error` and `solana-instruction-error`). */
export function describeTransactionError(err: TransactionError): string {
  if (typeof err === 'string') return TRANSACTION_ERROR_TEXTS[err] ?? err
  const { InstructionError, DuplicateInstruction, InsufficientFundsForRent, ProgramExecutionTemporarilyRestricted } =
    err as {
      InstructionError?: readonly [number, string | { Custom?: number; BorshIoError?: string }]
      DuplicateInstruction?: number
      InsufficientFundsForRent?: { account_index: number }
      ProgramExecutionTemporarilyRestricted?: { account_index: number }
    }
  if (InstructionError)
    return `Error processing Instruction ${InstructionError[0]}: ${describeInstructionError(InstructionError[1])}`
  if (DuplicateInstruction !== undefined) {
    return `Transaction contains a duplicate instruction (${DuplicateInstruction}) that is not allowed`
  }
  if (InsufficientFundsForRent) {
    return `Transaction results in an account (${InsufficientFundsForRent.account_index}) with insufficient funds for rent`
  }
  if (ProgramExecutionTemporarilyRestricted) {
    const index = ProgramExecutionTemporarilyRestricted.account_index
    return `Execution of the program referenced by account at index ${index} is temporarily restricted.`
  }
  return Object.keys(err)[0] ?? 'unknown error'
}

function describeInstructionError(err: string | { Custom?: number; BorshIoError?: string }): string {
  if (typeof err === 'string') return INSTRUCTION_ERROR_TEXTS[err] ?? err
  return err.Custom === undefined
    ? (INSTRUCTION_ERROR_TEXTS['BorshIoError'] as string)
    : `custom program error: 0x${err.Custom.toString(16)}`
}
