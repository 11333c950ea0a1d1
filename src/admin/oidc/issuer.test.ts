import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  begin,
  CALLBACK,
  finish,
  type HostileIssuer,
  LOGIN,
  sessionOf,
} from '../../../test/support/admin/hostile-issuer.ts'
import { type OidcRig, startOidcRig } from '../../../test/support/admin/oidc-rig.ts'
import { createManualClock } from '../../core/clock.ts'
import { until } from '../../platform/process/test-wait.ts'

describe('an OpenID Connect issuer with faults', () => {
  let at: OidcRig
  before(async () => {
    at = await startOidcRig()
  })
  after(() => at[Symbol.asyncDispose]())

  test('an error of the issuer is shown as plain text without its markup; another issuer is refused', async () => {
    await using on = await at.open()
    const { admin, issuer } = on
    const denied = await finish(admin, await begin(admin), { error: 'access_denied', error_description: '<b>x</b>' })
    assert.equal(denied.headers.get('content-type'), 'text/plain; charset=utf-8')
    assert.match(await denied.text(), /the issuer refused it: access_denied\.\n\n.*ask the administrator of the issuer/)
    const scope = await finish(admin, await begin(admin), { error: 'invalid_scope' })
    assert.match(await scope.text(), /invalid_scope\.\n\n.*admin\.oidc\.scopes/)
    const unknown = await finish(admin, await begin(admin), { error: 'constructor' })
    assert.match(await unknown.text(), /constructor\.\n\n.*The log of the issuer has the cause/)
    const odd = await finish(admin, await begin(admin), { error: '<script>alert(1)</script>' })
    assert.doesNotMatch(await odd.text(), /script/)
    // Before the state is known, nothing of the request is shown.
    const stray = await fetch(`${admin.url}${CALLBACK}?error=access_denied&state=x`)
    assert.doesNotMatch(await stray.text(), /access_denied/)
    const mixed = await finish(admin, await begin(admin), { iss: 'https://other.example' })
    assert.match(await mixed.text(), /not of the configured issuer\.\n\n.*compares admin\.oidc\.issuer/)
    issuer.override['/token'] = (response) => void response.writeHead(401).end('{"error":"invalid_client"}')
    assert.match(
      await (await finish(admin, await begin(admin))).text(),
      /invalid_client\.\n\n.*admin\.oidc\.clientSecret/,
    )
    issuer.override['/token'] = (response) => void response.writeHead(400).end('{"error":"invalid_grant"}')
    assert.match(
      await (await finish(admin, await begin(admin))).text(),
      /did not accept the code: invalid_grant\.\n\n.*redirect URI/,
    )
  })

  test('an issuer that is required to name itself must do so', async () => {
    await using on = await at.open()
    const { admin, issuer } = on
    issuer.metadata['authorization_response_iss_parameter_supported'] = true
    assert.match(await (await finish(admin, await begin(admin))).text(), /not of the configured issuer/)
    const begun = await begin(admin)
    issuer.idToken = () => issuer.sign({ nonce: begun.nonce })
    sessionOf(await finish(admin, begun, { iss: issuer.url }))
  })

  /** Discovery documents, key sets and responses that cannot be used. */
  const BROKEN: Readonly<Record<string, readonly [(issuer: HostileIssuer) => void, RegExp]>> = {
    'discovery of another issuer': [
      (issuer) => (issuer.metadata['issuer'] = 'https://other.example'),
      /another issuer[\s\S]*writes the issuer into admin\.oidc\.issuer exactly/,
    ],
    'an endpoint without TLS elsewhere': [
      (issuer) => (issuer.metadata['token_endpoint'] = 'http://other.example/token'),
      /token_endpoint .* not an https URL/,
    ],
    'an endpoint that is not HTTP': [
      (issuer) => (issuer.metadata['authorization_endpoint'] = 'javascript:alert(1)'),
      /authorization_endpoint .* not an https URL/,
    ],
    'no key set': [(issuer) => delete issuer.metadata['jwks_uri'], /no jwks_uri[\s\S]*corrects the discovery document/],
    'a redirect elsewhere': [
      (issuer) =>
        (issuer.override['/.well-known/openid-configuration'] = (response) =>
          void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()),
      /status 302/,
    ],
    'an endless document': [
      (issuer) =>
        (issuer.override['/.well-known/openid-configuration'] = (response) =>
          void response.end(`"${'x'.repeat(300_000)}"`)),
      /more than 262144 bytes/,
    ],
    'a document that is not JSON': [
      (issuer) => (issuer.override['/.well-known/openid-configuration'] = (response) => void response.end('<html>')),
      /not a JSON object/,
    ],
    'a key set that is none': [
      (issuer) => (issuer.override['/jwks'] = (response) => void response.end('{"keys":7}')),
      /key set .* cannot be used: it is not a JSON Web Key Set/,
    ],
    'too many keys': [(issuer) => (issuer.keys = Array.from({ length: 101 }, () => issuer.jwk)), /KEYS_MAX/],
    'a token response without an ID token': [
      (issuer) => (issuer.override['/token'] = (response) => void response.end('{"access_token":"a"}')),
      /no ID token/,
    ],
    'an endless token response': [
      (issuer) => (issuer.override['/token'] = (response) => void response.end(`"${'x'.repeat(200_000)}"`)),
      /more than 131072 bytes/,
    ],
  }
  for (const [what, [plant, expected]] of Object.entries(BROKEN))
    test(`503 in plain text: ${what}`, async () => {
      await using on = await at.open()
      plant(on.issuer)
      let response = await fetch(`${on.admin.url}${LOGIN}`, { redirect: 'manual' })
      if (response.status === 303) {
        const begun = await begin(on.admin)
        on.issuer.idToken = () => on.issuer.sign({ nonce: begun.nonce })
        response = await finish(on.admin, begun)
      }
      const text = await response.text()
      assert.equal(response.status, 503, text)
      assert.match(text, expected)
      assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8')
      assert.ok(Number(response.headers.get('retry-after')) > 0)
    })

  test('an issuer that is down or silent gives 503, is called at most once a second, and tokens work', async () => {
    const clock = createManualClock()
    await using on = await at.open({}, { clock })
    const { admin, issuer } = on
    let held = 0
    issuer.override['/.well-known/openid-configuration'] = () => void (held += 1)
    const waiting = [1, 2, 3].map(() => fetch(`${admin.url}${LOGIN}`, { redirect: 'manual' }))
    await until('the issuer is called', () => held === 1)
    await until('the three logins wait', () => clock.pendingTimers() >= 1)
    clock.advance(10_000)
    for (const response of await Promise.all(waiting)) {
      assert.equal(response.status, 503)
      assert.match(await response.text(), /no response within 10 s/)
    }
    assert.equal(held, 1)
    const { secret } = await admin.add('while-down', 'owner')
    assert.equal((await admin.call('GET', '/v1/me', secret)).status, 200)
    delete issuer.override['/.well-known/openid-configuration']
    clock.advance(1000)
    await begin(admin)
    await issuer[Symbol.asyncDispose]()
    clock.advance(3_600_000)
    const down = await fetch(`${admin.url}${LOGIN}`, { redirect: 'manual' })
    assert.deepEqual([down.status, down.headers.get('content-type')], [503, 'text/plain; charset=utf-8'])
  })
})
