import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Claims, startHostileIssuer } from '../../../test/support/admin/hostile-issuer.ts'
import { createManualClock } from '../../core/clock.ts'
import { Secret } from '../../platform/config/secret-ref.ts'
import { secureRandom } from '../../platform/process/random.ts'
import { type OidcOptions, oidcOptions } from './options.ts'
import { type Callback, createConfiguredSignIn, type SignIn } from './sign-in.ts'

const REDIRECT = 'https://ops.example.net/v1/oidc/callback'
/** Claims that lack what the userinfo endpoint may have. */
const BARE = { name: undefined, groups: undefined }

/** The flow of sign-in with an issuer of its own, without the listener of the admin API. */
async function setUp(t: TestContext, path = '', given: Partial<OidcOptions> = {}) {
  const issuer = await startHostileIssuer()
  t.after(() => issuer[Symbol.asyncDispose]())
  const clock = createManualClock()
  issuer.nowMs = clock.nowMs
  const options = oidcOptions.parse({
    ...{ issuer: `${issuer.url}${path}`, clientId: 'sluice', roles: { ops: 'support' } },
    ...given,
  })
  const configured = createConfiguredSignIn(options, {
    ...{ clock, random: secureRandom },
    readSecret: async () => new Secret('s3cret'),
  })
  const begin = async () => {
    const on = configured.current() as SignIn
    const { url, browser } = await on.begin(REDIRECT)
    const { searchParams: sent } = new URL(url)
    const [state, nonce] = [sent.get('state') ?? '', sent.get('nonce') ?? '']
    return {
      nonce,
      finish: (more: Partial<Callback> = {}) =>
        (configured.current() as SignIn).finish({
          ...{ state, code: 'c', iss: undefined, error: undefined, browser },
          ...more,
        }),
    }
  }
  const signIn = async (claims: Claims = {}) => {
    const { nonce, finish } = await begin()
    issuer.idToken = () => issuer.sign({ iss: options.issuer, nonce, ...claims })
    return finish()
  }
  return { issuer, clock, options, configured, begin, signIn }
}

test('a response without a code is refused before the issuer is called', async (t) => {
  const { issuer, begin } = await setUp(t)
  const { finish } = await begin()
  await assert.rejects(finish({ code: undefined }), { code: 'sign-in-refused', message: /CODE_CHARS_MAX/ })
  assert.equal(issuer.calls['/token'], undefined)
})

test('the userinfo endpoint is called with an access token only, and where the issuer has the endpoint', async (t) => {
  const { issuer, begin, signIn } = await setUp(t)
  const { nonce, finish } = await begin()
  const idToken = await issuer.sign({ nonce, ...BARE })
  issuer.override['/token'] = (response) => void response.end(JSON.stringify({ id_token: idToken, access_token: 7 }))
  await assert.rejects(finish(), { code: 'no-role', message: /no groups of you/ })
  assert.equal(issuer.calls['/userinfo'], undefined)
  const without = await setUp(t)
  delete without.issuer.metadata['userinfo_endpoint']
  await assert.rejects(without.signIn(BARE), { code: 'no-role', message: /no groups of you/ })
  delete issuer.override['/token']
  await assert.rejects(signIn(BARE), { code: 'no-role' })
  assert.equal(issuer.calls['/userinfo'], 1)
})

test('a key set and a userinfo response have limits in bytes', async (t) => {
  const { issuer, signIn } = await setUp(t)
  const large = (bytes: number) => JSON.stringify({ sub: 'u-1', keys: issuer.keys, more: 'x'.repeat(bytes) })
  issuer.override['/userinfo'] = (response) => void response.end(large(65_536))
  await assert.rejects(signIn(BARE), { code: 'issuer-unavailable', message: /userinfo .* more than 65536 bytes/ })
  const other = await setUp(t)
  other.issuer.override['/jwks'] = (response) => void response.end(large(262_144))
  await assert.rejects(other.signIn(), { code: 'issuer-unavailable', message: /key set .* more than 262144 bytes/ })
})

test('an issuer may have a path, with or without a slash at its end', async (t) => {
  for (const path of ['/realms/ops', '/realms/ops/']) {
    const { issuer, options, signIn } = await setUp(t, path)
    const at = '/realms/ops/.well-known/openid-configuration'
    const metadata = { ...issuer.metadata, issuer: options.issuer }
    issuer.override[at] = (response) => void response.end(JSON.stringify(metadata))
    assert.equal((await signIn()).id, `oidc:${options.issuer}#u-1`)
    assert.equal(issuer.calls[at], 1)
  }
})

test('a key that the issuer has removed is refused after 15 minutes at the latest', async (t) => {
  const { issuer, clock, signIn } = await setUp(t)
  await signIn()
  issuer.keys = []
  clock.advance(899_999)
  await signIn()
  clock.advance(1)
  await assert.rejects(signIn(), { code: 'sign-in-refused', message: /no key with its "kid"/ })
})

test('the secret is sent in the body only to an issuer that does not take it in the header', async (t) => {
  for (const [methods, isInBody] of [
    [['client_secret_post'], true],
    [['client_secret_post', 'client_secret_basic'], false],
    [['private_key_jwt'], false],
  ] as const) {
    const { issuer, signIn } = await setUp(t, '', { clientSecret: 'env:SECRET' })
    issuer.metadata['token_endpoint_auth_methods_supported'] = methods
    let hasHeader = false
    issuer.onToken = ({ headers }) => {
      hasHeader = headers.authorization !== undefined
    }
    await signIn()
    const [form] = issuer.forms
    assert.equal(hasHeader, !isInBody)
    assert.deepEqual(
      [form?.get('client_id'), form?.get('client_secret')],
      isInBody ? ['sluice', 's3cret'] : [null, null],
    )
  }
})

test('a reload without a change leaves logins that have begun; another issuer ends the role of its sessions', async (t) => {
  const { issuer, options, configured, begin, signIn } = await setUp(t)
  const person = await signIn()
  const { nonce, finish } = await begin()
  configured.apply(structuredClone(options))
  issuer.idToken = () => issuer.sign({ nonce })
  await finish()
  assert.equal(configured.roleOf(person), 'support')
  configured.apply({ ...options, issuer: 'https://other.example' })
  assert.equal(configured.roleOf(person), undefined)
})
