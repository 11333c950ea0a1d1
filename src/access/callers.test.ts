import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { mustEnter, openAdmission, reasonOf } from '../../test/support/access/admission.ts'
import { checkProperty } from '../../test/support/process/property.ts'
import { TOKEN_REFUSALS } from '../contract/errors.ts'
import type { PresentedToken } from './credentials.ts'
import { BUILT_IN_PLANS } from './plan.ts'
import { SKEW_MS } from './validity.ts'

const RPC = { interface: 'rpc', method: 'getSlot' } as const

describe('authenticate', () => {
  test('a token of one product is refused by every other, for every pair of products', () => {
    const products = ['bundle', 'indexer', 'shreds-raw'] as const
    for (const bought of products) {
      const { fixture, enter } = openAdmission()
      const { secret } = fixture.subscribe({ products: [bought] })
      fixture.publish()
      for (const round of [1, 2]) {
        for (const product of products) {
          const expected = product === bought ? 'ok' : 'not-in-plan'
          assert.equal(reasonOf(enter(secret, product)), expected, `${product} with ${bought}, round ${round}`)
        }
      }
    }
  })

  test('a valid token is accepted for the products of its subscription, and for those that need no subscription', () => {
    const { fixture, enter } = openAdmission()
    const { secret, subscription } = fixture.subscribe({ products: ['bundle'] })
    fixture.publish()
    const caller = mustEnter(enter(secret))
    assert.equal(caller.subscription.id, subscription.id)
    assert.equal(caller.limits, BUILT_IN_PLANS.starter)
    assert.equal(reasonOf(enter(secret, 'execution')), 'ok')
    assert.equal(reasonOf(enter(secret, 'indexer')), 'not-in-plan')
    assert.equal(reasonOf(enter(secret, 'shreds-raw')), 'not-in-plan')
  })

  test('a subscription with only a dedicated node can use the endpoints of the bundle', () => {
    const { fixture, enter } = openAdmission()
    const { secret } = fixture.subscribe({ products: ['dedicated-node'] })
    fixture.publish()
    assert.equal(reasonOf(enter(secret)), 'ok')
    assert.equal(reasonOf(enter(secret, 'indexer')), 'not-in-plan')
  })

  test('each state has its own reason', () => {
    const { fixture, enter, clock, admission } = openAdmission()
    const now = clock.nowMs()
    const cases: [string, () => string][] = [
      ['ok', () => fixture.subscribe().secret],
      ['revoked', () => withToken({ state: 'revoked' })],
      ['ok', () => withToken({ state: 'retiring', notAfter: now - SKEW_MS })],
      ['expired', () => withToken({ state: 'retiring', notAfter: now - SKEW_MS - 1 })],
      ['ok', () => fixture.subscribe({ validUntil: now - SKEW_MS }).secret],
      ['expired', () => fixture.subscribe({ validUntil: now - SKEW_MS - 1 }).secret],
      ['suspended', () => fixture.subscribe({ state: 'suspended' }).secret],
      ['cancelled', () => fixture.subscribe({ state: 'cancelled' }).secret],
      ['cancelled', () => withToken({ state: 'revoked' }, { state: 'cancelled' })],
      ['not-in-plan', () => fixture.subscribe({ products: ['indexer'] }).secret],
      ['malformed', () => 'slc_1'],
      ['malformed', () => fixture.subscribe().secret.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a'))],
      ['malformed', () => ''],
      ['unknown', () => 'slc_000000000000000000000000000000000JcP3N'],
    ]
    function withToken(changes: object, sub: object = {}): string {
      const { secret, token } = fixture.subscribe(sub)
      fixture.changeToken(token.id, changes)
      return secret
    }
    for (const [reason, make] of cases) {
      const secret = make()
      fixture.publish()
      assert.equal(reasonOf(enter(secret)), reason, reason)
    }
    const { secret, subscription } = fixture.subscribe()
    fixture.changeCustomer(subscription.customerId, { state: 'suspended' })
    fixture.publish()
    assert.equal(reasonOf(enter(secret)), 'suspended')
    assert.equal(reasonOf(admission.authenticate({ refused: 'missing' }, 'bundle', now)), 'missing')
    assert.equal(reasonOf(admission.authenticate({ refused: 'conflicting' }, 'bundle', now)), 'conflicting')
  })

  test('every kind of bad token costs the same work: one hash of one length, one look-up', (t) => {
    const { fixture, admission, hashed, clock } = openAdmission()
    const now = clock.nowMs()
    const good = fixture.subscribe().secret
    const bad = [
      fixture.subscribe({ state: 'suspended' }).secret,
      fixture.subscribe({ state: 'cancelled' }).secret,
      fixture.subscribe({ validUntil: 1 }).secret,
      fixture.subscribe({ products: ['shreds-raw'] }).secret,
    ]
    const { secret: revoked, token } = fixture.subscribe()
    fixture.changeToken(token.id, { state: 'revoked' })
    fixture.publish()
    // A known token that is not valid for this product costs the same work.
    assert.equal(admission.authenticate({ token: good }, 'bundle', now).ok, true)

    const text = fc.oneof(
      fc.constantFrom(...bad, revoked, 'slc_000000000000000000000000000000000JcP3N', ''),
      fc.string({ maxLength: 60 }),
      fc.string({ minLength: 42, maxLength: 42, unit: 'binary' }),
      fc.nat(41).map((at) => `${good.slice(0, at)}~${good.slice(at + 1)}`),
      fc.constant('x'.repeat(8192)),
    )
    const presented: fc.Arbitrary<PresentedToken> = fc.oneof(
      text.map((token) => ({ token })),
      fc.constantFrom({ refused: 'missing' } as const, { refused: 'conflicting' } as const),
    )
    const property = fc.property(presented, fc.constantFrom('bundle', 'indexer'), (given, product) => {
      if ('token' in given && given.token === good && product === 'bundle') return
      const [hashes, looks] = [hashed.length, fixture.looks()]
      const outcome = admission.authenticate(given, product === 'bundle' ? 'bundle' : 'indexer', now)
      assert.ok(!outcome.ok && TOKEN_REFUSALS.includes(outcome.reason))
      assert.equal(hashed.length - hashes, 1)
      assert.equal(hashed.at(-1)?.length, 42)
      assert.equal(fixture.looks() - looks, 1)
    })
    checkProperty(t, property, 500, 50_000)
    const before = hashed.length
    assert.equal(reasonOf(admission.authenticate({ token: good }, 'indexer', now)), 'not-in-plan')
    assert.equal(hashed.length, before + 1)
  })

  test('a token seen before is not hashed again until the snapshot is replaced', () => {
    const { fixture, enter, hashed } = openAdmission()
    const { secret, token } = fixture.subscribe()
    fixture.publish()
    for (let count = 0; count < 10; count++) assert.equal(enter(secret).ok, true)
    assert.equal(hashed.length, 1)
    fixture.publish()
    assert.equal(enter(secret).ok, true)
    assert.equal(hashed.length, 2)
    fixture.changeToken(token.id, { state: 'revoked' })
    assert.equal(enter(secret).ok, true, 'not before the snapshot is replaced')
    fixture.publish()
    assert.equal(reasonOf(enter(secret)), 'revoked')
  })

  test('caches at most its maximum of tokens, and no invalid ones', () => {
    const { fixture, enter, hashed } = openAdmission({ callersMax: 10 })
    const secrets = Array.from({ length: 20 }, () => fixture.subscribe().secret)
    fixture.publish()
    for (const secret of secrets) enter(secret)
    hashed.length = 0
    for (const secret of secrets.slice(10)) enter(secret)
    assert.equal(hashed.length, 0)
    enter(secrets[0] ?? '')
    assert.equal(hashed.length, 1)
    for (let count = 0; count < 50; count++) enter(`slc_${count}`)
    enter(secrets[19] ?? '')
    assert.equal(hashed.length, 51)
  })

  test('a cached token expires', () => {
    const { fixture, enter, clock, admission } = openAdmission()
    const { secret } = fixture.subscribe({ validUntil: clock.nowMs() + 1000 })
    fixture.publish()
    const caller = mustEnter(enter(secret))
    clock.advance(1000 + SKEW_MS)
    assert.equal(reasonOf(enter(secret)), 'ok')
    clock.advance(1001)
    assert.equal(reasonOf(enter(secret)), 'expired')
    const outcome = admission.admit(caller, RPC)
    assert.equal(outcome.ok || outcome.reason, 'expired')
  })

  test('refusals are counted by reason', () => {
    const { fixture, enter, registry } = openAdmission()
    fixture.publish()
    enter('x')
    enter('x')
    enter('slc_000000000000000000000000000000000JcP3N')
    assert.equal(registry.value('sluice_access_refused_total', { reason: 'malformed' }), 2)
    assert.equal(registry.value('sluice_access_refused_total', { reason: 'unknown' }), 1)
  })

  test('renew needs only the digest, as tickets and open streams do', () => {
    const { fixture, enter, admission, clock, hashed } = openAdmission()
    const { secret, token } = fixture.subscribe()
    fixture.publish()
    const caller = mustEnter(enter(secret))
    hashed.length = 0
    assert.equal(admission.renew(caller.tokenSha256, 'bundle', clock.nowMs()), caller)
    assert.equal(reasonOf(admission.renew(caller.tokenSha256, 'indexer', clock.nowMs())), 'not-in-plan')
    assert.equal(reasonOf(admission.renew('0'.repeat(64), 'bundle', clock.nowMs())), 'unknown')
    fixture.changeToken(token.id, { state: 'revoked' })
    fixture.publish()
    assert.equal(reasonOf(admission.renew(caller.tokenSha256, 'bundle', clock.nowMs())), 'revoked')
    assert.equal(hashed.length, 0)
  })
})

describe('the indexer login', () => {
  test('requires token and database login of one subscription', () => {
    const { fixture, admission, clock } = openAdmission()
    const a = fixture.subscribe({ products: ['indexer'] })
    const b = fixture.subscribe({ products: ['indexer'] })
    const login = fixture.grantIndexer(a.subscription.id)
    const other = fixture.grantIndexer(b.subscription.id)
    fixture.publish()
    const enter = (secret: string, given: Parameters<typeof admission.authenticateIndexer>[1]) =>
      reasonOf(admission.authenticateIndexer({ token: secret }, given, clock.nowMs()))
    assert.equal(enter(a.secret, login), 'ok')
    assert.equal(enter(b.secret, other), 'ok')
    assert.equal(enter(a.secret, other), 'unknown')
    assert.equal(enter(a.secret, { ...login, password: other.password }), 'unknown')
    assert.equal(enter(a.secret, { ...login, username: 'nobody' }), 'unknown')
    assert.equal(enter(a.secret, { refused: 'missing' }), 'missing')
    assert.equal(enter('x', login), 'malformed')
    fixture.changeCredential('idx_0', { state: 'revoked' })
    fixture.publish()
    assert.equal(enter(a.secret, login), 'revoked')
  })

  test('is refused for its form whatever the token is', () => {
    const { fixture, admission, clock, registry } = openAdmission()
    const { secret } = fixture.subscribe({ products: ['indexer'] })
    const { secret: expired } = fixture.subscribe({ products: ['indexer'], validUntil: clock.nowMs() - 10 * SKEW_MS })
    fixture.publish()
    const tokens = [{ token: secret }, { token: expired }, { token: 'x' }, { refused: 'missing' } as const]
    for (const refused of ['missing', 'conflicting', 'malformed'] as const) {
      for (const token of tokens)
        assert.equal(reasonOf(admission.authenticateIndexer(token, { refused }, clock.nowMs())), refused)
      assert.equal(registry.value('sluice_access_refused_total', { reason: refused }), tokens.length)
    }
  })

  test('hashes the password whatever is wrong', () => {
    const { fixture, admission, hashed, clock } = openAdmission()
    fixture.publish()
    for (const login of [{ refused: 'missing' } as const, { username: 'u', password: 'p' }]) {
      const before = hashed.length
      admission.authenticateIndexer({ token: 'x' }, login, clock.nowMs())
      assert.equal(hashed.length - before, 2)
    }
  })
})
