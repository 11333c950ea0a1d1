import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isNonceAuthorized, NONCE_ACCOUNT_BYTES, nonceAccountIndex, readNonceAccount } from './durable-nonce.ts'
import type { ParsedTransaction } from './types.ts'

const key = (n: number) => new Uint8Array(32).fill(n)
const [PAYER, NONCE, SYSTEM, PROGRAM] = [key(1), key(2), key(0), key(3)]
const ADVANCE = Uint8Array.of(4, 0, 0, 0)

/** Two signers, one writable account, the rest read-only. */
function transaction(...instructions: ParsedTransaction['instructions']): ParsedTransaction {
  return {
    version: 0,
    signatures: [],
    message: new Uint8Array(),
    header: { numRequiredSignatures: 1, numReadonlySigned: 0, numReadonlyUnsigned: 2 },
    staticKeys: [PAYER, NONCE, SYSTEM, PROGRAM],
    recentBlockhash: key(7),
    instructions,
    addressTableLookups: [],
    config: null,
    wireLength: 0,
  }
}
const instruction = (programIdIndex: number, accounts: number[], data = ADVANCE) => ({
  programIdIndex,
  accounts: Uint8Array.from(accounts),
  data,
})

test('the first instruction identifies a durable nonce transaction', () => {
  const advance = instruction(2, [1, 3, 0])
  assert.equal(nonceAccountIndex(transaction(advance)), 1)
  for (const [what, ...instructions] of [
    ['none'],
    ['not the first', instruction(2, [0, 1], Uint8Array.of(2, 0, 0, 0)), advance],
    ['another program', instruction(3, [1, 3, 0])],
    ['another instruction', instruction(2, [1, 3, 0], Uint8Array.of(4, 0, 0, 1))],
    ['cut short', instruction(2, [1, 3, 0], Uint8Array.of(4, 0, 0))],
    ['no account', instruction(2, [])],
    ['a read-only account', instruction(2, [3, 3, 0])],
    ['an account of a lookup table', instruction(2, [4, 3, 0])],
  ] as const) {
    assert.equal(nonceAccountIndex(transaction(...instructions)), undefined, what)
  }
})

test('decodes only an initialized nonce account of 80 bytes and the current version', () => {
  const data = new Uint8Array(NONCE_ACCOUNT_BYTES)
  data.set([1, 0, 0, 0, 1, 0, 0, 0, ...key(8), ...key(9)])
  assert.deepEqual(readNonceAccount(data), { authority: key(8), nonce: key(9) })
  assert.equal(readNonceAccount(data.subarray(1)), undefined)
  assert.equal(readNonceAccount(data.with(0, 0)), undefined, 'the legacy version')
  assert.equal(readNonceAccount(data.with(4, 0)), undefined, 'not initialized')
})

test('the nonce authority must sign and be an account of the first instruction', () => {
  const advance = instruction(2, [1, 3, 0])
  assert.equal(isNonceAuthorized(transaction(advance), PAYER), true)
  assert.equal(isNonceAuthorized(transaction(advance), PROGRAM), false, 'named, does not sign')
  assert.equal(isNonceAuthorized(transaction(instruction(2, [1, 3])), PAYER), false, 'signs, not named')
  assert.equal(isNonceAuthorized(transaction(), PAYER), false)
})
