import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sign, tipInstruction, walletOf } from '../../../test/support/sender/start.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { decodeText } from './decode.ts'

const BLOCKHASH = encodeBase58(new Uint8Array(32).fill(3))

test('without an encoding, a faulty transaction has the fault of the encoding that it came in', () => {
  const payer = walletOf(0)
  let isAnyBoth = false
  for (let bytes = 1; bytes <= 8; bytes++) {
    const wire = Uint8Array.of(...sign(payer, BLOCKHASH, [tipInstruction(payer)]), ...new Uint8Array(bytes))
    const base64 = Buffer.from(wire).toString('base64')
    const base58 = encodeBase58(wire)
    isAnyBoth ||= base58.length % 4 === 0
    for (const text of [base64, base58]) {
      const decoded = decodeText(text, undefined)
      assert.ok(!decoded.ok)
      assert.equal(decoded.fault, 'trailing-bytes', text)
    }
  }
  assert.ok(isAnyBoth)
})

test('a text that is neither is no base58, and a long one of base58 characters is too long for it', () => {
  const faultOf = (text: string) => {
    const decoded = decodeText(text, undefined)
    return decoded.ok ? undefined : [decoded.fault, decoded.limit]
  }
  assert.deepEqual(faultOf('%%%'), ['base58', undefined])
  assert.deepEqual(faultOf('z'.repeat(1684)), ['too-large', 'base58CharsMax'])
  assert.deepEqual(faultOf(Buffer.alloc(4200, 0xff).toString('base64')), ['too-large', 'transactionV1BytesMax'])
})
