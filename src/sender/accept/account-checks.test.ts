import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { createManualClock, type ManualClock } from '../../core/clock.ts'
import { type AccountChecks, createAccountChecks } from './account-checks.ts'
import { type Account, createAccountLookups } from './account-lookups.ts'

const OWNER = '11111111111111111111111111111111'

describe('a payer before its transaction is sent', () => {
  let clock: ManualClock
  let checks: AccountChecks
  let lamports: number | null | undefined
  let calls: number

  beforeEach(() => {
    clock = createManualClock()
    calls = 0
    const ask = async () => {
      calls += 1
      if (lamports === undefined) return undefined
      return { value: [lamports === null ? null : { lamports, owner: OWNER, data: ['', 'base64'] }] }
    }
    checks = createAccountChecks(createAccountLookups({ ask, clock }), clock)
  })

  const check = () =>
    checks.check('payer', (account: Account) => ((account?.lamports ?? 0n) >= 10n ? undefined : 'poor'))

  test('one seen able to pay passes at once, and is read again in the background', async () => {
    lamports = 10
    assert.equal(await check(), undefined)
    for (let uses = 0; uses < 100; uses++) assert.equal(check(), undefined, 'at once')
    assert.equal(calls, 1)
    await clock.advanceAsync(2000)
    lamports = 9
    assert.deepEqual([check(), check()], [undefined, undefined])
    await clock.advanceAsync(0)
    assert.equal(calls, 2, 'both share one reading')
    assert.equal(check(), 'poor', 'and it counts from then on')
  })

  test('one that cannot pay is refused, with one reading a second, and passes within a second of being funded', async () => {
    lamports = null
    assert.equal(await check(), 'poor')
    lamports = 10
    for (let uses = 0; uses < 100; uses++) assert.equal(check(), 'poor', 'from memory')
    assert.equal(calls, 1)
    await clock.advanceAsync(999)
    assert.equal(check(), 'poor')
    await clock.advanceAsync(1)
    assert.equal(await check(), undefined)
    assert.equal(calls, 2)
  })

  test('without a response everything passes, and no transaction waits for long', async () => {
    lamports = undefined
    assert.equal(await check(), undefined)
    assert.equal(check(), undefined, 'not asked again at once')
    await clock.advanceAsync(1000)
    lamports = 3
    assert.equal(await check(), 'poor')
    lamports = undefined
    await clock.advanceAsync(1000)
    assert.equal(await check(), undefined, 'what was read before does not refuse it')
    assert.equal(check(), undefined)
  })

  test('a known payer passes at once while the node is away, for half a minute', async () => {
    lamports = 10
    assert.equal(await check(), undefined)
    lamports = undefined
    for (let at = 0; at < 14; at++) {
      await clock.advanceAsync(2000)
      assert.equal(check(), undefined)
    }
    await clock.advanceAsync(2000)
    assert.ok(check() instanceof Promise)
  })
})
