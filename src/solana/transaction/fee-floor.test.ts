import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeBase58 } from '../crypto/base58.ts'
import { createSigningKey } from '../crypto/ed25519.ts'
import { buildLegacyMessage, type Instruction, signMessage } from './build.ts'
import { feeFloor } from './fee-floor.ts'
import { parseTransaction } from './transaction.ts'

const [PAYER, SECOND] = [1, 2].map((n) => createSigningKey(new Uint8Array(32).fill(n)))
const COMPUTE_BUDGET = decodeBase58('ComputeBudget111111111111111111111111111111')
const u32 = (n: number) => [n & 255, (n >> 8) & 255, (n >> 16) & 255, n >>> 24]
const budget = (...data: number[]): Instruction => ({
  programId: COMPUTE_BUDGET,
  accounts: [],
  data: Uint8Array.from(data),
})
const unitLimit = (units: number) => budget(2, ...u32(units))
const unitPrice = (micros: number) => budget(3, ...u32(micros), 0, 0, 0, 0)
const signedBy = (address: Uint8Array): Instruction => ({
  programId: new Uint8Array(32).fill(60),
  accounts: [{ address, signer: true, writable: false }],
  data: new Uint8Array(),
})

function feeOf(...instructions: Instruction[]): bigint {
  assert.ok(PAYER !== undefined && SECOND !== undefined)
  const recentBlockhash = new Uint8Array(32)
  const message = buildLegacyMessage({ feePayer: PAYER.publicKey, recentBlockhash, instructions })
  const parsed = parseTransaction(signMessage(message, [PAYER, SECOND]))
  assert.ok(parsed.ok)
  return feeFloor(parsed.transaction)
}

test('5000 lamports per signature, and the priority fee when price and limit are set', () => {
  assert.equal(feeOf(), 5000n)
  assert.equal(feeOf(signedBy(SECOND?.publicKey ?? new Uint8Array())), 10_000n)
  assert.equal(feeOf(unitLimit(200_001), unitPrice(10)), 5003n, 'rounded up')
  assert.equal(feeOf(unitPrice(10)), 5000n, 'the default limit is left out')
  assert.equal(
    feeOf(unitLimit(2_000_000_000), unitPrice(1_000_000)),
    1_405_000n,
    'no more than the units of a transaction',
  )
  assert.equal(feeOf(budget(2, 1), budget(3, 1)), 5000n, 'cut short')
})

test('a v1 transaction has its priority fee in its config', () => {
  const header = { numRequiredSignatures: 1, numReadonlySigned: 0, numReadonlyUnsigned: 0 }
  const config = { priorityFeeLamports: 77n, computeUnitLimit: 1, loadedAccountsDataSizeLimit: 1, heapSize: null }
  const common = {
    version: 1,
    header,
    signatures: [],
    message: new Uint8Array(),
    staticKeys: [],
    instructions: [],
  } as const
  const rest = { recentBlockhash: new Uint8Array(32), addressTableLookups: [], wireLength: 0 }
  assert.equal(feeFloor({ ...common, ...rest, config }), 5077n)
})
