import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { decodeTransactionError, encodeTransactionError, type TransactionErrorJson } from './error.ts'

const CASES: readonly (readonly [TransactionErrorJson, string])[] = [
  ['AccountInUse', '00000000'],
  ['BlockhashNotFound', '07000000'],
  ['CallChainTooDeep', '09000000'],
  ['CommitCancelled', '26000000'],
  [{ InstructionError: [0, 'GenericError'] }, '080000000000000000'],
  [{ InstructionError: [2, { Custom: 6001 }] }, '08000000021900000071170000'],
  [{ InstructionError: [255, { Custom: 4294967295 }] }, '08000000ff19000000ffffffff'],
  [{ InstructionError: [1, 'BorshIoError'] }, '08000000012c000000'],
  [{ InstructionError: [1, 'BuiltinProgramsMustConsumeComputeUnits'] }, '080000000135000000'],
  [{ DuplicateInstruction: 3 }, '1e00000003'],
  [{ InsufficientFundsForRent: { account_index: 4 } }, '1f00000004'],
  [{ ProgramExecutionTemporarilyRestricted: { account_index: 5 } }, '2300000005'],
]

test('encodes errors as bincode and decodes them again', () => {
  for (const [error, hex] of CASES) {
    const bytes = encodeTransactionError(error)
    assert.equal(bytes && Buffer.from(bytes).toString('hex'), hex, JSON.stringify(error))
    assert.deepEqual(decodeTransactionError(Buffer.from(hex, 'hex')), error)
  }
})

test('neither encodes nor decodes an unknown error', () => {
  for (const error of ['Nonsense', {}, { InstructionError: [0, 'Nonsense'] }, { InstructionError: [256, 'Custom'] }]) {
    assert.equal(encodeTransactionError(error), undefined)
  }
  for (const hex of ['', '000000', '27000000', '08000000', '0800000000360000', '080000000019000000', '1e000000']) {
    assert.equal(decodeTransactionError(Buffer.from(hex, 'hex')), undefined, hex)
  }
})
