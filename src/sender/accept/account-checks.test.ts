import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { createManualClock, type ManualClock } from '../../core/clock.ts'
import { type AccountChecks, createAccountCache, createAccountChecks } from './account-checks.ts'
import { type Account, createAccountLookups } from './account-lookups.ts'

const OWNER = '11111111111111111111111111111111'

describe('account checks of payers', () => {
  let clock: ManualClock
  let checks: AccountChecks
  let lamports: number | null | undefined
  let slot: number
  let bestSlot: number
  let calls: number

  beforeEach(() => {
    clock = createManualClock()
    slot = 100
    bestSlot = 100
    calls = 0
    const callNode = async () => {
      calls += 1
      if (lamports === undefined) return undefined
      const value = [lamports === null ? null : { lamports, owner: OWNER, data: ['', 'base64'] }]
      return { context: { slot }, value }
    }
    checks = createAccountChecks({ read: createAccountLookups({ callNode, clock }), clock, bestSlot: () => bestSlot })
  })

  const check = () =>
    checks.check('payer', (account: Account) => ((account?.lamports ?? 0n) >= 10n ? undefined : 'poor'))

  test('a payer known to be able to pay passes at once and is read again in the background', async () => {
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

  test('refuses a payer that cannot pay with one reading per second, and accepts it within a second of being funded', async () => {
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

  test('passes everything when no node responds, after a short wait', async () => {
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

  test('a known payer passes at once for 30 s while the node is unreachable', async () => {
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

  test('an older state, from a node that is behind, does not replace a newer one', async () => {
    lamports = 10
    assert.equal(await check(), undefined)
    await clock.advanceAsync(2000)
    lamports = 3
    slot = 99
    assert.equal(check(), undefined, 'renewed in the background')
    await clock.advanceAsync(0)
    assert.deepEqual([calls, check()], [2, undefined])
    slot = 100
    await clock.advanceAsync(2000)
    void check()
    await clock.advanceAsync(0)
    assert.deepEqual([calls, check()], [3, 'poor'], 'of the same slot the later one counts')
    await clock.advanceAsync(1000)
    lamports = 10
    slot = 99
    assert.equal(await check(), 'poor', 'nor does it pass as unknown')
    assert.deepEqual([check(), calls], ['poor', 4])
  })

  test('after 30 s without a newer state the older one counts: the slots of a chain that was started anew are lower', async () => {
    lamports = 10
    assert.equal(await check(), undefined)
    lamports = 3
    slot = 5
    bestSlot = 5
    await clock.advanceAsync(29_999)
    assert.equal(check(), undefined)
    await clock.advanceAsync(2000)
    assert.equal(await check(), 'poor')
  })

  test('one that cannot pay as far as a node more than two slots behind the others knows passes, until a node has caught up', async () => {
    for (const reported of [null, 3]) {
      lamports = reported
      slot = bestSlot - 3
      assert.deepEqual([await check(), check()], [undefined, undefined])
      await clock.advanceAsync(1000)
      slot = bestSlot - 2
      assert.equal(await check(), 'poor')
      bestSlot += 3
      assert.equal(check(), 'poor', 'the slot at the time of the reading counts')
      await clock.advanceAsync(1000)
      slot -= 1
      assert.equal(await check(), undefined, 'an older state stays, and is outdated by now')
    }
  })

  test('one that can pay passes from memory, also where the node is far behind the others', async () => {
    lamports = 10
    slot = 50
    assert.deepEqual([await check(), check()], [undefined, undefined])
    assert.equal(calls, 1)
  })
})

const CACHED_MAX = 16_384
const account = (lamports: bigint) => ({ lamports, owner: 'owner', data: new Uint8Array() })
const at = (slot: number, found: Account) => ({ slot, account: found })

test('a failed reading keeps the previous account and records the attempt', () => {
  const cache = createAccountCache()
  cache.set('never read', undefined, 5, 3)
  assert.deepEqual(cache.get('never read'), { account: undefined, slot: 0, readMs: 0, triedMs: 5, isUnknown: true })
  cache.set('payer', at(3, account(7n)), 10, 3)
  cache.set('payer', undefined, 20, 3)
  assert.deepEqual(cache.get('payer'), { account: account(7n), slot: 3, readMs: 10, triedMs: 20, isUnknown: true })
  cache.set('payer', at(3, null), 30, 3)
  assert.deepEqual(cache.get('payer'), { account: null, slot: 3, readMs: 30, triedMs: 30, isUnknown: false })
})

test('missing accounts displace one another, not existing accounts', () => {
  const cache = createAccountCache()
  for (const address of ['payer', 'other']) cache.set(address, at(1, account(5n)), 0, 3)
  cache.set('missing', at(1, null), 0, 3)
  for (let n = 0; n < CACHED_MAX; n++) cache.set(`invented ${n}`, at(1, null), 0, 3)
  assert.deepEqual([cache.get('payer')?.account, cache.get('missing')], [account(5n), undefined])
  for (let n = 1; n < CACHED_MAX; n++) cache.set(`funded ${n}`, at(1, account(1n)), 0, 3)
  assert.deepEqual(
    [cache.get('payer')?.account, cache.get('other')],
    [account(5n), undefined],
    'the most recently used stays',
  )
})
