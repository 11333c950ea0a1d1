import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  begin,
  type Claims,
  finish,
  sessionOf,
  signIn,
  startHostileIssuer,
} from '../../../test/support/admin/hostile-issuer.ts'
import { type OidcRig, startOidcRig } from '../../../test/support/admin/oidc-rig.ts'
import { createManualClock } from '../../core/clock.ts'

describe('ID tokens', () => {
  let at: OidcRig
  before(async () => {
    at = await startOidcRig()
  })
  after(() => at[Symbol.asyncDispose]())

  const clock = createManualClock()
  const seconds = (offset: number): number => clock.nowMs() / 1000 + offset
  const open = async () => {
    const on = await at.open({}, { clock })
    on.issuer.nowMs = clock.nowMs
    return on
  }
  /** Claims that are refused, and the text of the page. */
  const REFUSED: Readonly<Record<string, readonly [() => Claims, RegExp]>> = {
    'another audience': [() => ({ aud: 'other' }), /claim "aud"/],
    'no audience': [() => ({ aud: undefined }), /claim "aud"/],
    'several audiences without azp': [() => ({ aud: ['sluice', 'other'] }), /claim "azp"/],
    'an azp of another client': [() => ({ azp: 'other' }), /claim "azp"/],
    'another issuer': [() => ({ iss: 'https://other.example' }), /claim "iss"/],
    'no expiry': [() => ({ exp: undefined }), /claim "exp"/],
    'an expiry 60 s ago': [() => ({ exp: seconds(-60) }), /expired/],
    'a begin in 61 s': [() => ({ nbf: seconds(61) }), /claim "nbf"/],
    'an issue in 61 s': [() => ({ iat: seconds(61), exp: seconds(600) }), /claim "iat"/],
    'an issue 661 s ago': [() => ({ iat: seconds(-661) }), /expired/],
    'no time of issue': [() => ({ iat: undefined }), /claim "iat"/],
    'another nonce': [() => ({ nonce: 'another' }), /claim "nonce"/],
    'no nonce': [() => ({ nonce: undefined }), /claim "nonce"/],
    'a nonce that is not text': [() => ({ nonce: ['x'] }), /claim "nonce"/],
    'no subject': [() => ({ sub: undefined }), /claim "sub"/],
    'an empty subject': [() => ({ sub: '' }), /SUB_CHARS_MAX/],
    'an endless subject': [() => ({ sub: 'x'.repeat(256) }), /SUB_CHARS_MAX/],
    'an endless token': [() => ({ more: 'x'.repeat(33_000) }), /ID_TOKEN_BYTES_MAX/],
    'more groups than are kept': [() => ({ groups: Array.from({ length: 1001 }, () => 'ops') }), /GROUPS_MAX/],
  }
  for (const [what, [claims, expected]] of Object.entries(REFUSED))
    test(`refused: ${what}`, async () => {
      await using on = await open()
      const response = await signIn(on.admin, on.issuer, claims())
      const text = await response.text()
      assert.deepEqual([response.status, response.headers.getSetCookie()], [400, []], text)
      assert.match(text, expected)
    })

  test('clocks may differ by 60 s, and a token for several clients names this one', async () => {
    await using on = await open()
    const both = { aud: ['sluice', 'b'], azp: 'sluice' }
    for (const claims of [{ exp: seconds(-59) }, { nbf: seconds(60) }, { iat: seconds(60) }, both])
      sessionOf(await signIn(on.admin, on.issuer, claims))
  })

  test('alg none, a shared secret, and another key are refused by name', async () => {
    await using on = await at.open()
    const { admin, issuer } = on
    const attempt = async (token: (nonce: string) => Promise<string>): Promise<string> => {
      const begun = await begin(admin)
      issuer.idToken = () => token(begun.nonce)
      const response = await finish(admin, begun)
      assert.equal(response.status, 400)
      return response.text()
    }
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const none = await attempt(async (nonce) => {
      const [, payload = ''] = (await issuer.sign({ nonce })).split('.')
      return `${encode({ alg: 'none', typ: 'JWT' })}.${payload}.`
    })
    assert.match(none, /not one of RS256, PS256, ES256, EdDSA/)
    const secret = new TextEncoder().encode(JSON.stringify(issuer.jwk))
    const hs256 = await attempt((nonce) => issuer.sign({ nonce }, { alg: 'HS256', kid: 'k1', key: secret }))
    assert.match(hs256, /not one of RS256, PS256, ES256, EdDSA/)
    await using foreign = await startHostileIssuer()
    const other = await attempt((nonce) => issuer.sign({ nonce }, foreign.signing))
    assert.match(other, /its signature is wrong/)
    const cut = await attempt(async (nonce) => (await issuer.sign({ nonce })).slice(0, -4))
    assert.match(cut, /signature is wrong|can be verified/)
    for (const rubbish of ['', 'x', 'a.b.c', '..'])
      assert.match(await attempt(async () => rubbish), /ID token|can be verified/)
  })

  test('unknown keys load the key set again at most every 30 s; a new key is found', async () => {
    const clock = createManualClock(Date.now())
    await using on = await at.open({}, { clock })
    const { admin, issuer } = on
    sessionOf(await signIn(admin, issuer))
    assert.equal(issuer.calls['/jwks'], 1)
    for (let n = 0; n < 15; n++) {
      const begun = await begin(admin)
      issuer.idToken = () => issuer.sign({ nonce: begun.nonce }, { ...issuer.signing, kid: `unknown-${n}` })
      assert.match(await (await finish(admin, begun)).text(), /no key with its "kid"/)
    }
    assert.equal(issuer.calls['/jwks'], 1, 'the set is younger than 30 s')
    clock.advance(30_000)
    issuer.jwk['kid'] = 'k2'
    issuer.signing = { ...issuer.signing, kid: 'k2' }
    for (let n = 0; n < 3; n++) sessionOf(await signIn(admin, issuer))
    assert.equal(issuer.calls['/jwks'], 2)
  })
})
