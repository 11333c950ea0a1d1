import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAccountMemory } from './account-memory.ts'

const KEPT_MAX = 16_384
const account = (lamports: bigint) => ({ lamports, owner: 'owner', data: new Uint8Array() })

test('a read that fails leaves what was read before, and is noted', () => {
  const memory = createAccountMemory()
  memory.keep('never read', undefined, 5)
  assert.deepEqual(memory.known('never read'), { account: undefined, readMs: 0, triedMs: 5 })
  memory.keep('payer', account(7n), 10)
  memory.keep('payer', undefined, 20)
  assert.deepEqual(memory.known('payer'), { account: account(7n), readMs: 10, triedMs: 20 })
  memory.keep('payer', null, 30)
  assert.deepEqual(memory.known('payer'), { account: null, readMs: 30, triedMs: 30 })
})

test('addresses without an account displace one another, not the accounts that exist', () => {
  const memory = createAccountMemory()
  for (const address of ['payer', 'other']) memory.keep(address, account(5n), 0)
  memory.keep('missing', null, 0)
  for (let n = 0; n < KEPT_MAX; n++) memory.keep(`made up ${n}`, null, 0)
  assert.deepEqual([memory.known('payer')?.account, memory.known('missing')], [account(5n), undefined])
  for (let n = 1; n < KEPT_MAX; n++) memory.keep(`funded ${n}`, account(1n), 0)
  assert.deepEqual(
    [memory.known('payer')?.account, memory.known('other')],
    [account(5n), undefined],
    'the one used last stays',
  )
})
