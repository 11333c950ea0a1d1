import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DECIMAL, parseDecimal, printDecimal, scaleDecimal } from './decimal.ts'

const ONE = { times: 1n, by: 1n }

test('a decimal is read and printed without a loss', () => {
  for (const text of ['0.00', '12.50', '0.10', '999999999999.99']) {
    assert.match(text, DECIMAL)
    assert.equal(printDecimal(parseDecimal(text), 2), text)
  }
  assert.equal(printDecimal(parseDecimal('0.000000001'), 9), '0.000000001')
  assert.equal(printDecimal(parseDecimal('980'), 0), '980')
  for (const text of ['', '-1', '01', '1.', '.5', '1e3', '1,5', '1.0000000001', '1234567890123'])
    assert.doesNotMatch(text, DECIMAL)
})

test('a share is rounded once, a half away from zero', () => {
  const rounded = (text: string, digits = 2, of = ONE) =>
    printDecimal(scaleDecimal(parseDecimal(text), of, digits), digits)
  assert.equal(rounded('0.005'), '0.01')
  assert.equal(rounded('0.004999999'), '0.00')
  assert.equal(rounded('0.005', 2, { times: -1n, by: 1n }), '-0.01')
  assert.equal(rounded('0.5', 0), '1')
  assert.equal(rounded('100', 2, { times: 10n, by: 31n }), '32.26')
  assert.equal(rounded('0.1', 2, { times: 3n, by: 1n }), '0.30', 'where floating point has 0.30000000000000004')
  // Above what a double holds exactly.
  assert.equal(rounded('0.01', 2, { times: 9_007_199_254_740_993n, by: 1n }), '90071992547409.93')
})
