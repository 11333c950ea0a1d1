import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TIP_ACCOUNTS, tipped, walletOf } from '../../../test/support/sender/start.ts'
import { encodeParsedTransaction } from '../../../test/support/solana/encode-transaction.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { SYSTEM_PROGRAM } from '../../solana/transaction/build.ts'
import { parseSenderOptions } from '../options.ts'
import { errorOf } from './refusal.ts'
import { validateTip } from './tip-terms.ts'

const BLOCKHASH = encodeBase58(new Uint8Array(32).fill(3))
const MIN = 1_000_000

/** A v0 transaction whose transfer goes to the first account of a lookup table. */
function throughLookupTable(lamports: number): Uint8Array {
  const data = new Uint8Array(12)
  data[0] = 2
  new DataView(data.buffer).setBigUint64(4, BigInt(lamports), true)
  return encodeParsedTransaction({
    version: 0,
    signatures: [new Uint8Array(64).fill(9)],
    message: new Uint8Array(),
    header: { numRequiredSignatures: 1, numReadonlySigned: 0, numReadonlyUnsigned: 1 },
    staticKeys: [walletOf(0).publicKey, SYSTEM_PROGRAM],
    recentBlockhash: new Uint8Array(32).fill(3),
    instructions: [{ programIdIndex: 1, accounts: Uint8Array.of(0, 2), data }],
    addressTableLookups: [
      {
        accountKey: new Uint8Array(32).fill(90),
        writableIndexes: Uint8Array.of(0),
        readonlyIndexes: new Uint8Array(),
      },
    ],
    config: null,
    wireLength: 0,
  })
}

test('a tip through a lookup table is refused with -32042, and data to correct the transaction', () => {
  const verdict = validateTip(throughLookupTable(MIN), parseSenderOptions({ tipAccounts: TIP_ACCOUNTS }))
  assert.ok(!verdict.ok)
  const { code, data } = errorOf(verdict.refusal, { requestId: 'mine' })
  assert.equal(code, -32042)
  const { reason, minTipLamports, tipAccounts, request_id } = JSON.parse(data) as Record<string, unknown>
  assert.deepEqual([reason, minTipLamports, tipAccounts, request_id], ['lookup-table', MIN, TIP_ACCOUNTS, 'mine'])
})

test('a minimum above the floor of the specification is in effect, one below it is refused', () => {
  assert.throws(() => parseSenderOptions({ minTipLamports: MIN - 1 }), /minTipLamports/)
  assert.equal(parseSenderOptions({ minTipLamports: MIN }).minTipLamports, MIN)
  const options = parseSenderOptions({ tipAccounts: TIP_ACCOUNTS, minTipLamports: 2 * MIN })
  const check = (lamports: number) => validateTip(tipped(walletOf(0), BLOCKHASH, 'tip', BigInt(lamports)), options)
  const below = check(2 * MIN - 1)
  assert.ok(!below.ok)
  const { code, data } = below.refusal
  assert.deepEqual([code, data['minTipLamports'], data['foundLamports']], ['tip-too-small', 2 * MIN, 2 * MIN - 1])
  assert.ok(check(2 * MIN).ok)
})
