import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type AddressedAccount, packAccounts, unpackAccounts } from './account-codec.ts'

test('packing and unpacking accounts gives the same accounts', () => {
  const key = fc.uint8Array({ minLength: 32, maxLength: 32 })
  const account = fc.record(
    {
      lamports: fc.bigInt({ min: 1n, max: 2n ** 64n - 1n }),
      owner: key,
      data: fc.uint8Array({ maxLength: 200 }),
      executable: fc.boolean(),
    },
    { noNullPrototype: true },
  )
  const seed = Number(process.env['SLUICE_SEED'] ?? Date.now() % 2 ** 31)
  console.log(`SLUICE_SEED=${seed}`)
  fc.assert(
    fc.property(fc.array(fc.tuple(key, fc.option(account))), (accounts: AddressedAccount[]) => {
      assert.deepEqual([...unpackAccounts(packAccounts(accounts))], accounts)
    }),
    { seed },
  )
})
