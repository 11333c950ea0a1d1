import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../../test/support/process/property.ts'
import { createSeededRandom } from '../../../core/random.ts'
import { AccountTable } from './account-table.ts'
import { keyText } from './filters.ts'
import { accountOf } from './test-transactions.ts'

/** With these factors every account has the same hash. */
const NO_RANDOM = { bytes: (count: number) => new Uint8Array(count), float: () => 0 }

test('finds the same values as a Map, by text and by bytes, even when all hashes collide', (t) => {
  const steps = fc.array(fc.record({ account: fc.nat(12), isAdded: fc.boolean() }), { maxLength: 40 })
  for (const random of [createSeededRandom(1), NO_RANDOM]) {
    checkProperty(
      t,
      fc.property(steps, (given) => {
        const table = new AccountTable<number>(random)
        const expected = new Map<string, number>()
        for (const [at, { account, isAdded }] of given.entries()) {
          const text = keyText(accountOf(account))
          if (!isAdded) {
            table.delete(text)
            expected.delete(text)
          } else if (!expected.has(text)) {
            table.add(text, at)
            expected.set(text, at)
          }
        }
        assert.equal(table.size, expected.size)
        for (let account = 0; account <= 13; account++) {
          const text = keyText(accountOf(account))
          assert.equal(table.find(text), expected.get(text))
          assert.equal(table.get(Buffer.concat([Buffer.of(1, 2, 3), accountOf(account)]), 3), expected.get(text))
        }
      }),
      100,
      2000,
    )
  }
})
