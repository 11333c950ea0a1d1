import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { JsonText, writeJson } from '../json.ts'
import { decimalText, encodeTokenAmount } from './token-amount.ts'

const shown = (amount: bigint, decimals: number) => writeJson(encodeTokenAmount(amount, { decimals, unixTimestamp: 0 }))
const YEAR = 31_556_736

describe('token amounts', () => {
  it('are exact as text', () => {
    assert.equal(decimalText(1n, 0), '1')
    assert.equal(decimalText(1n, 9), '0.000000001')
    assert.equal(decimalText(1_000_000_000n, 9), '1')
    assert.equal(decimalText(1_234_567_890n, 3), '1234567.89')
    assert.equal(decimalText(1_234_567_890n, 25), '0.000000000000000123456789')
    assert.equal(decimalText(18446744073709551615n, 0), '18446744073709551615')
    assert.equal(decimalText(0n, 6), '0')
  })

  it('have the members of Agave, with null where the double overflows', () => {
    assert.equal(shown(42n, 2), '{"amount":"42","decimals":2,"uiAmount":0.42,"uiAmountString":"0.42"}')
    assert.equal(shown(100n, 2), '{"amount":"100","decimals":2,"uiAmount":1.0,"uiAmountString":"1"}')
    assert.equal(
      shown(1n, 20),
      '{"amount":"1","decimals":20,"uiAmount":null,"uiAmountString":"0.00000000000000000001"}',
    )
  })

  it('grow with interest: five percent for a year', () => {
    const interest = {
      initializationTimestamp: 0,
      preUpdateAverageRate: 500,
      lastUpdateTimestamp: YEAR,
      currentRate: 500,
    }
    const amount = encodeTokenAmount(1_000_000_000_000_000_000n, { decimals: 18, interest, unixTimestamp: YEAR })
    assert.match(amount['uiAmountString'] as string, /^1\.05127109637602411/)
    assert.equal(amount['amount'], '1000000000000000000')
  })

  it('scale by the multiplier in force, truncated to raw units', () => {
    const scale = { multiplier: 1.5, newMultiplier: 2, newMultiplierEffectiveTimestamp: 100 }
    assert.equal(encodeTokenAmount(3n, { decimals: 1, scale, unixTimestamp: 99 })['uiAmountString'], '0.4')
    const after = encodeTokenAmount(5n, { decimals: 1, scale, unixTimestamp: 100 })
    assert.equal(after['uiAmountString'], '1')
    assert.deepEqual(after['uiAmount'], new JsonText('1.0'))
  })
})
