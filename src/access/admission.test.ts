import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mustEnter, openAdmission } from '../../test/support/access/admission.ts'

const RPC = { interface: 'rpc', method: 'getSlot' } as const

describe('admit', () => {
  test('charges, counts and returns the remaining units', async () => {
    const { fixture, enter, admission, usage, rows, registry } = openAdmission()
    const { secret, subscription } = fixture.subscribe()
    fixture.publish()
    const caller = mustEnter(enter(secret))
    const outcome = admission.admit(caller, { interface: 'ws', method: 'getProgramAccounts' })
    assert.deepEqual(outcome, { ok: true, cost: 30, limit: 150, remaining: 120, resetMs: 2000 })
    await usage.flush()
    assert.deepEqual(
      rows.map(({ subscriptionId, calls, units, refused }) => [subscriptionId, calls, units, refused]),
      [[subscription.id, 1, 30, 0]],
    )
    assert.equal(registry.value('sluice_access_units_total', { interface: 'ws' }), 30)
    assert.equal(admission.quota(caller).month.used, 30)
  })

  test('a refusal names the limit and is counted but not charged', async () => {
    const { fixture, enter, admission, usage, rows, registry } = openAdmission()
    const { secret } = fixture.subscribe()
    fixture.publish()
    const caller = mustEnter(enter(secret))
    for (let count = 0; count < 50; count++)
      assert.equal(admission.admit(caller, { interface: 'rpc', method: 'sendTransaction' }).ok, true)
    const outcome = admission.admit(caller, { interface: 'rpc', method: 'sendTransaction' })
    assert.ok(!outcome.ok && outcome.reason === 'over-limit')
    assert.deepEqual([outcome.limitName, outcome.limitSize, outcome.retryAfterMs], ['sendsPerSecond', 5, 200])
    await usage.flush()
    assert.deepEqual(
      rows.map(({ calls, units, refused }) => [calls, units, refused]),
      [[50, 50, 1]],
    )
    assert.equal(registry.value('sluice_access_limited_total', { limit: 'sendsPerSecond' }), 1)
  })

  test('a refund reverts the units and the usage', async () => {
    const { fixture, enter, admission, usage, rows } = openAdmission()
    const { secret } = fixture.subscribe()
    fixture.publish()
    const caller = mustEnter(enter(secret))
    const call = { interface: 'rpc', method: 'getProgramAccounts' } as const
    assert.equal(admission.admit(caller, call).ok, true)
    admission.refund(caller, call)
    assert.deepEqual([admission.quota(caller).remaining, admission.quota(caller).month.used], [150, 0])
    await usage.flush()
    assert.deepEqual(rows, [])
  })

  test('a refund reverts what was charged, also where the terms changed after the caller was authenticated', async () => {
    const { fixture, enter, admission, usage, rows } = openAdmission()
    const { secret, subscription } = fixture.subscribe()
    fixture.publish()
    const caller = mustEnter(enter(secret))
    const call = { interface: 'rpc', method: 'getBalance' } as const
    const before = admission.admit(caller, call)
    fixture.changeSubscription(subscription.id, { overrides: { methods: { getBalance: { cost: 20 } } } })
    fixture.publish()
    const charged = admission.admit(caller, call)
    assert.ok(before.ok && charged.ok)
    assert.deepEqual([before.cost, charged.cost], [1, 20])
    admission.refund(caller, call, charged)
    assert.deepEqual([admission.quota(caller).remaining, admission.quota(caller).month.used], [149, 1])
    admission.refund(caller, call, before)
    assert.equal(admission.quota(caller).month.used, 0)
    await usage.flush()
    assert.deepEqual(rows, [])
  })

  test('tokens of one subscription share its account during a rotation and its grace', () => {
    const { fixture, enter, admission, clock } = openAdmission()
    const { secret, subscription, token } = fixture.subscribe()
    fixture.publish()
    const old = mustEnter(enter(secret))
    for (let count = 0; count < 5; count++) admission.admit(old, { interface: 'rpc', method: 'getProgramAccounts' })
    fixture.changeToken(token.id, { state: 'retiring', notAfter: clock.nowMs() + 3_600_000 })
    const { secret: next } = fixture.issue(subscription.id)
    fixture.publish()
    assert.equal(admission.admit(mustEnter(enter(next)), RPC).ok, false)
    assert.equal(admission.admit(mustEnter(enter(secret)), RPC).ok, false)
    assert.equal(admission.admit(old, RPC).ok, false)
  })

  test('a caller held by a connection follows the store: new limits, then revocation', () => {
    const { fixture, enter, admission } = openAdmission()
    const { secret, subscription, token } = fixture.subscribe()
    fixture.publish()
    const caller = mustEnter(enter(secret))
    fixture.changeSubscription(subscription.id, { plan: 'build' })
    fixture.publish()
    const outcome = admission.admit(caller, RPC)
    assert.ok(outcome.ok)
    assert.equal(outcome.limit, 2000)
    assert.equal(admission.quota(caller).limit, 2000)
    fixture.changeToken(token.id, { state: 'revoked' })
    fixture.publish()
    const refused = admission.admit(caller, RPC)
    assert.equal(refused.ok || refused.reason, 'revoked')
  })

  test('an account closed by a sweep is opened again by a caller that still holds it', () => {
    const { fixture, enter, admission, ledger, clock } = openAdmission()
    const { secret } = fixture.subscribe()
    fixture.publish()
    const caller = mustEnter(enter(secret))
    admission.admit(caller, RPC)
    clock.advance(60_000)
    ledger.sweep(clock.monotonicMs())
    assert.equal(ledger.accounts(), 0)
    assert.equal(admission.admit(caller, RPC).ok, true)
    assert.equal(ledger.accounts(), 1)
    assert.equal(admission.quota(caller).month.used, 2)
  })

  test('ten thousand unknown methods create no new series', async () => {
    const { fixture, enter, admission, registry, clock } = openAdmission()
    const { secret } = fixture.subscribe({ overrides: { unitsPerSecond: null } })
    fixture.publish()
    const caller = mustEnter(enter(secret))
    admission.admit(caller, RPC)
    const before = (await registry.text()).split('\n').length
    for (let count = 0; count < 10_000; count++) admission.admit(caller, { interface: 'rpc', method: `m${count}` })
    clock.advance(1)
    assert.equal((await registry.text()).split('\n').length, before)
    const text = await registry.text()
    assert.equal(
      text.includes(secret) || text.includes(caller.subscription.id) || text.includes(caller.tokenSha256),
      false,
    )
  })
})
