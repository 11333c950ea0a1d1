import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../../test/support/process/property.ts'
import { bytes, parsed, u64 } from '../../../../test/support/solana/account-bytes.ts'
import { SYSVAR_OWNER } from '../../chain/addresses.ts'
import { slotHistoryAccount } from '../../engine/sysvars.ts'
import { SYSVAR } from './program-ids.ts'

type SlotHistory = { readonly info: { readonly bits: string; readonly nextSlot: number } }
const slotHistory = (data: Uint8Array) => parsed(data, SYSVAR_OWNER, {}, SYSVAR.slotHistory) as SlotHistory

test('the digits of a slot history are the bits of its words, the lowest first', (t) => {
  const history = fc.record({
    words: fc.array(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), { maxLength: 8 }),
    bitCount: fc.integer({ min: 0, max: 600 }),
  })
  const property = fc.property(history, ({ words, bitCount }) => {
    const data = bytes(1, u64(words.length), ...words.map(u64), u64(bitCount), u64(7))
    const digits = words.flatMap((word) => Array.from({ length: 64 }, (_, bit) => (word >> BigInt(bit)) & 1n)).join('')
    assert.deepEqual(slotHistory(data).info, { bits: digits.slice(0, bitCount), nextSlot: 7 })
  })
  checkProperty(t, property, 200, 5000)
})

test('the slot history of the chain has one digit for each of its 1,048,576 slots', () => {
  const { bits, nextSlot } = slotHistory(slotHistoryAccount(9001).data).info
  assert.equal(nextSlot, 9002)
  assert.ok(bits === `${'1'.repeat(9002)}${'0'.repeat(1_048_576 - 9002)}`)
})
