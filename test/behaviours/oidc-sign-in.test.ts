import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { OidcOptions } from '../../src/admin/oidc/options.ts'
import { CSRF_HEADER } from '../../src/contract/admin-routes.ts'
import { CALLBACK, LOGIN, readSession } from '../support/admin/hostile-issuer.ts'
import { createCookieJar, type OidcClient, startOidcIssuer } from '../support/admin/oidc-issuer.ts'
import { type OidcRig, startOidcRig } from '../support/admin/oidc-rig.ts'
import { CLIENT_SECRET, startTestAdmin } from '../support/admin/start.ts'

const PEOPLE = {
  ann: { name: 'Ann Owner', groups: ['staff', 'bosses'] },
  ron: { name: 'Ron Reader', groups: ['readers'] },
  eve: { name: 'Eve', groups: ['elsewhere', 'nowhere'] },
}
const ROLES = { bosses: 'owner', readers: 'read-only' } as const

describe('sign-in with a real OpenID Connect issuer', { timeout: 240_000 }, () => {
  let rig: OidcRig
  before(async () => {
    rig = await startOidcRig()
  })
  after(() => rig[Symbol.asyncDispose]())

  async function open(
    client: Partial<OidcClient> = {},
    more: { options?: Partial<OidcOptions>; hasClaimsInIdToken?: boolean } = {},
  ) {
    const opened = new AsyncDisposableStack()
    const issuer = opened.use(await startOidcIssuer(PEOPLE))
    const oidc = { issuer: issuer.url, clientId: 'sluice', clientSecret: 'env:SECRET', roles: ROLES, ...more.options }
    const admin = opened.use(await startTestAdmin(rig.store, { oidc }))
    const redirects = [`${admin.url}${CALLBACK}`]
    await issuer.open(
      [{ client_id: 'sluice', client_secret: CLIENT_SECRET, redirect_uris: redirects, ...client }],
      more,
    )
    return { issuer, admin, [Symbol.asyncDispose]: () => opened.disposeAsync() }
  }
  const cookieOf = (jar: ReturnType<typeof createCookieJar>, url: string): string =>
    `sluice_admin=${jar.get(url, 'sluice_admin') ?? ''}`

  for (const alg of ['RS256', 'PS256', 'ES256', 'EdDSA'])
    test(`a person signs in, works within the role and signs out (${alg}, claims ${alg === 'RS256' ? 'of userinfo' : 'in the ID token'})`, async () => {
      const hasClaimsInIdToken = alg !== 'RS256'
      await using on = await open({ id_token_signed_response_alg: alg }, { hasClaimsInIdToken })
      const { admin, issuer } = on
      const jar = createCookieJar()
      const end = await jar.walk(`${admin.url}${LOGIN}`, 'ann', (url) => url === `${admin.url}/`)
      assert.equal(end.status, 303, await end.text())
      const cookie = cookieOf(jar, admin.url)
      const { name, role, id, csrf_token: csrf = '' } = await readSession(admin, cookie)
      assert.deepEqual([name, role, id], ['Ann Owner', 'owner', `oidc:${issuer.url}#ann`])
      assert.equal(jar.get(admin.url, 'sluice_oidc'), undefined, 'the cookie of the login is gone')

      const headers = { cookie, [CSRF_HEADER]: csrf, 'content-type': 'application/json' }
      const body = JSON.stringify({ name: `made-by-${alg.toLowerCase()}`, role: 'read-only' })
      assert.equal((await fetch(`${admin.url}/v1/admins`, { method: 'POST', headers, body })).status, 201)
      let audited = ''
      for await (const line of rig.store.auditLines(1))
        if (line.includes(`made-by-${alg.toLowerCase()}`)) audited = line
      const { actor } = JSON.parse(audited) as { actor: { admin: object } }
      assert.deepEqual(actor.admin, { id, name: 'Ann Owner', role: 'owner', address: '127.0.0.1' })

      assert.equal((await fetch(`${admin.url}/v1/session`, { method: 'DELETE', headers })).status, 200)
      assert.equal((await readSession(admin, cookie)).status, 401)
      // What the browser brought back is of no use any more, nor in the log.
      const callback =
        jar.visited.find((url) => url.startsWith(`${admin.url}${CALLBACK}`)) ?? assert.fail('no callback')
      assert.equal((await jar.send(callback)).status, 400)
      const { searchParams } = new URL(callback)
      for (const secret of [searchParams.get('code'), searchParams.get('state'), csrf, cookie.split('=')[1]])
        assert.ok(secret && !admin.log().includes(secret))
    })

  test('a reader is refused what only owners may do; a person without a role gets no session', async () => {
    await using on = await open({ token_endpoint_auth_method: 'client_secret_basic' })
    const { admin } = on
    const reader = createCookieJar()
    await reader.walk(`${admin.url}${LOGIN}`, 'ron', (url) => url === `${admin.url}/`)
    const cookie = cookieOf(reader, admin.url)
    assert.equal((await readSession(admin, cookie)).role, 'read-only')
    assert.equal((await fetch(`${admin.url}/v1/admins`, { headers: { cookie } })).status, 403)
    const stranger = createCookieJar()
    const refused = await stranger.walk(`${admin.url}${LOGIN}`, 'eve')
    const text = await refused.text()
    assert.equal(refused.status, 403, text)
    assert.match(text, /2 groups of you, and none has a role here/)
    assert.ok(!text.includes('elsewhere') && stranger.get(admin.url, 'sluice_admin') === undefined)
  })

  test('a refusal of the issuer is shown by its code only', async () => {
    await using on = await open()
    const denied = await createCookieJar().walk(`${on.admin.url}${LOGIN}`, 'nobody')
    const text = await denied.text()
    assert.equal(denied.status, 400, text)
    assert.match(text, /the issuer refused it: access_denied/)
    assert.doesNotMatch(text, /<b>/)
  })

  test('a code of a browser is of no use in another (login CSRF), and is exchanged once', async () => {
    await using on = await open()
    const { admin } = on
    const attacker = createCookieJar()
    const stopped = await attacker.walk(`${admin.url}${LOGIN}`, 'ann', (url) =>
      url.startsWith(`${admin.url}${CALLBACK}`),
    )
    const callback = stopped.headers.get('location') ?? assert.fail('no callback')
    const victim = createCookieJar()
    await victim.walk(`${admin.url}${LOGIN}`, 'ron', (url) => url.startsWith(`${admin.url}${CALLBACK}`))
    const forged = await victim.send(callback)
    assert.equal(forged.status, 400)
    assert.equal(victim.get(admin.url, 'sluice_admin'), undefined)
    assert.equal((await attacker.send(callback)).status, 303)
    assert.equal((await attacker.send(callback)).status, 400)
  })

  test('a wrong secret of the client is reported by the code of the issuer', async () => {
    await using on = await open({ client_secret: 'another secret' })
    const refused = await createCookieJar().walk(`${on.admin.url}${LOGIN}`, 'ann')
    const text = await refused.text()
    assert.equal(refused.status, 400, text)
    assert.match(text, /did not accept the code: invalid_client/)
    assert.ok(!on.admin.log().includes(CLIENT_SECRET))
  })
})
