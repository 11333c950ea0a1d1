import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { createManualClock, type ManualClock } from '../../core/clock.ts'
import { type AccountChecks, createAccountChecks } from './account-checks.ts'
import { type Account, createAccountLookups } from './account-lookups.ts'
import { REREADS_MAX } from './rereads.ts'

describe('account checks of nonces', () => {
  let clock: ManualClock
  let checks: AccountChecks
  let nonce: string | undefined
  let calls: number

  beforeEach(() => {
    clock = createManualClock()
    calls = 0
    const callNode = async () => {
      calls += 1
      const data = Buffer.from(nonce ?? '').toString('base64')
      return nonce === undefined ? undefined : { value: [{ lamports: 1, owner: 'owner', data: [data, 'base64'] }] }
    }
    checks = createAccountChecks({ read: createAccountLookups({ callNode, clock }), clock, bestSlot: () => 0 })
  })

  const check = (blockhash: string) => {
    const faultOf = (account: Account) =>
      Buffer.from(account?.data ?? []).toString() === blockhash ? undefined : 'value'
    return checks.check('nonce', faultOf, blockhash)
  }

  test('a transaction with the next nonce passes at once after the one before it', async () => {
    for (const next of ['a', 'b', 'c']) {
      nonce = next
      assert.equal(await check(next), undefined)
      assert.equal(check(next), undefined, 'from memory')
      await clock.advanceAsync(100)
    }
    assert.equal(calls, 3)
  })

  test('a nonce that was found wrong is refused from memory for a second', async () => {
    nonce = 'a'
    assert.equal(await check('a'), undefined)
    assert.equal(await check('b'), 'value')
    for (let uses = 0; uses < 100; uses++) assert.equal(await check('b'), 'value')
    assert.equal(calls, 2)
    nonce = 'b'
    await clock.advanceAsync(1000)
    assert.equal(await check('b'), undefined)
    assert.equal(calls, 3)
  })

  test('invented nonces of one account cause a bounded number of readings in a second', async () => {
    nonce = 'a'
    for (let n = 0; n < 1000; n++) assert.equal(await check(`invented ${n}`), 'value')
    assert.ok(calls <= REREADS_MAX + 1, `${calls} readings`)
    await clock.advanceAsync(1000)
    for (let n = 0; n < 1000; n++) assert.equal(await check(`another ${n}`), 'value')
    assert.ok(calls <= 2 * (REREADS_MAX + 1), `${calls} readings`)
  })

  test('passes while the state of the account is unknown', async () => {
    nonce = 'a'
    assert.equal(await check('a'), undefined)
    nonce = undefined
    await clock.advanceAsync(1)
    assert.equal(await check('b'), undefined)
    assert.equal(check('b'), undefined)
    assert.equal(calls, 2)
  })
})
