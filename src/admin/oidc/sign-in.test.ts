import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  begin,
  CALLBACK,
  finish,
  LOGIN,
  readSession,
  sessionOf,
  signIn,
} from '../../../test/support/admin/hostile-issuer.ts'
import { type OidcRig, ROLES, startOidcRig } from '../../../test/support/admin/oidc-rig.ts'
import { CLIENT_SECRET, startTestAdmin } from '../../../test/support/admin/start.ts'
import type { CONTEXT } from '../../../test/support/store/engines.ts'
import { addCustomer } from '../../access/provisioning/customers.ts'
import { actorName } from '../../access/store/model.ts'
import {
  ADMIN_ROUTES,
  type AdminRoute,
  type AdminRouteId,
  CSRF_HEADER,
  ROLE_PERMISSIONS,
} from '../../contract/admin-routes.ts'
import { createManualClock } from '../../core/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import type { AdminHandler, AdminHandlers } from '../api/handler.ts'
import type { OidcOptions } from './options.ts'

const ROUTES = Object.entries(ADMIN_ROUTES) as [AdminRouteId, AdminRoute][]
const done: AdminHandler = async () => ({ body: { ok: true } })
const allHandlers = Object.fromEntries(
  ROUTES.filter(([id]) => !id.startsWith('admin') && id !== 'me').map(([id]) => [id, done]),
) as Partial<AdminHandlers>

describe('sign-in with OpenID Connect', () => {
  let at: OidcRig
  before(async () => {
    at = await startOidcRig()
  })
  after(() => at[Symbol.asyncDispose]())

  test('the request has PKCE, state and nonce; the code is exchanged with the verifier and the secret', async () => {
    await using on = await at.open({ clientSecret: 'env:SECRET', scopes: ['openid', 'groups'] })
    const { issuer, admin } = on
    const begun = await begin(admin)
    const { searchParams: sent, origin, pathname } = begun.url
    assert.equal(`${origin}${pathname}`, `${issuer.url}/authorize`)
    assert.deepEqual(
      ['response_type', 'client_id', 'scope', 'code_challenge_method'].map((name) => sent.get(name)),
      ['code', 'sluice', 'openid groups', 'S256'],
    )
    assert.equal(sent.get('redirect_uri'), `${admin.url}${CALLBACK}`)
    let authorization: string | undefined
    issuer.idToken = () => issuer.sign({ nonce: begun.nonce })
    issuer.onToken = (request) => {
      authorization = request.headers.authorization
    }
    const response = await finish(admin, begun)
    const cookie = sessionOf(response)
    assert.equal(response.headers.get('location'), '/')
    assert.equal(response.headers.get('referrer-policy'), 'no-referrer')
    const [form] = issuer.forms
    const challenge = Buffer.from(
      await crypto.subtle.digest('SHA-256', Buffer.from(form?.get('code_verifier') ?? '')),
    ).toString('base64url')
    assert.equal(challenge, sent.get('code_challenge'))
    assert.equal(form?.get('client_secret') ?? form?.get('client_id') ?? null, null, 'the secret is in the header')
    const encoded = new URLSearchParams({ v: CLIENT_SECRET }).toString().slice(2)
    assert.equal(authorization, `Basic ${Buffer.from(`sluice:${encoded}`).toString('base64')}`)
    const { name, role, id } = await readSession(admin, cookie)
    assert.deepEqual([name, role, id], ['Ann', 'support', `oidc:${issuer.url}#u-1`])
    const secrets = [begun.state, begun.nonce, cookie, 'code-of-the-issuer', 'access-token', encoded, begun.cookie]
    for (const secret of secrets) assert.ok(!admin.log().includes(secret.split('=').at(-1) as string), secret)
    assert.match(admin.log(), /signed in with OpenID Connect/)
  })

  test('a state is used once, by the browser that began it, within 10 minutes', async () => {
    const clock = createManualClock(Date.now())
    await using on = await at.open({}, { clock })
    const { admin, issuer } = on
    const refused = async (response: Response): Promise<void> => {
      assert.deepEqual([response.status, response.headers.getSetCookie()], [400, []])
      assert.match(await response.text(), /not begun in this browser, is finished/)
    }
    const begun = await begin(admin)
    const other = await begin(admin)
    issuer.idToken = () => issuer.sign({ nonce: begun.nonce })
    await refused(await finish(admin, { ...begun, cookie: '' }))
    await refused(await finish(admin, { ...begun, cookie: other.cookie }))
    await refused(await finish(admin, { ...begun, state: 'x' }))
    await refused(await fetch(`${admin.url}${CALLBACK}?code=c`, { headers: { cookie: begun.cookie } }))
    const twice = `${CALLBACK}?code=c&state=${begun.state}&state=${begun.state}`
    await refused(await fetch(`${admin.url}${twice}`, { headers: { cookie: begun.cookie } }))
    assert.equal(issuer.calls['/token'], undefined, 'nothing of these reached the issuer')
    sessionOf(await finish(admin, begun))
    await refused(await finish(admin, begun))
    assert.equal(issuer.calls['/token'], 1, 'the code is exchanged once')
    // The token of the first login does not fit the second.
    assert.match(await (await finish(admin, other)).text(), /claim "nonce"/)
    const late = await begin(admin)
    clock.advance(10 * 60_000)
    await refused(await finish(admin, late))
  })

  test('logins of one address have a budget, which does not affect tokens', async () => {
    await using on = await at.open({}, { clock: createManualClock() })
    const { admin, issuer } = on
    for (let n = 0; n < 20; n++) await begin(admin)
    const limited = await fetch(`${admin.url}${LOGIN}`, { redirect: 'manual' })
    assert.equal(limited.status, 429)
    assert.match(await limited.text(), /loginsPerAddress/)
    assert.equal(issuer.calls['/.well-known/openid-configuration'], 1)
    const { secret } = await admin.add('in-spite', 'owner')
    assert.equal((await admin.call('GET', '/v1/me', secret)).status, 200)
  })

  test('without a group that has a role: 403 with their number, no session, and no group of the token', async () => {
    await using on = await at.open()
    for (const [groups, expected] of [
      [['private-a', 'private-b'], /2 groups of you, and none has a role/],
      ['private-a', /1 group of you/],
      [[], /no groups of you in the claim "groups"/],
      [undefined, /no groups of you/],
      [['__proto__', 'constructor', 7, null], /3 groups|2 groups/],
    ] as const) {
      const response = await signIn(on.admin, on.issuer, { groups })
      const text = await response.text()
      assert.deepEqual([response.status, response.headers.getSetCookie()], [403, []], text)
      assert.match(text, expected)
      assert.match(text, /admin\.oidc/)
      assert.ok(!text.includes('private') && !on.admin.log().includes('private-'))
      assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8')
    }
  })

  test('groups and name of the userinfo endpoint are used if the ID token lacks them, of the same subject only', async () => {
    await using on = await at.open()
    const { admin, issuer } = on
    const bare = { name: undefined, groups: undefined }
    issuer.userinfo = { sub: 'u-1', name: 'Ann\u202e  of\nOps', groups: ['bosses'] }
    const { name, role } = await readSession(admin, sessionOf(await signIn(admin, issuer, bare)))
    assert.deepEqual([name, role], ['Ann of Ops', 'owner'])
    // What the ID token has counts.
    assert.equal(
      (await readSession(admin, sessionOf(await signIn(admin, issuer, { name: undefined })))).role,
      'support',
    )
    issuer.userinfo = { sub: 'u-2', groups: ['bosses'] }
    const other = await signIn(admin, issuer, bare)
    assert.equal(other.status, 400)
    assert.match(await other.text(), /another person/)
  })

  test('the strongest role counts; each role is refused on the routes that it has no permission for', async () => {
    for (const [groups, role] of [
      [['readers', 'bosses', 'ops'], 'owner'],
      [['readers'], 'read-only'],
    ] as const) {
      await using on = await at.open({}, { handlers: allHandlers })
      const cookie = sessionOf(await signIn(on.admin, on.issuer, { groups }))
      const { csrf_token: csrf = '', role: given } = await readSession(on.admin, cookie)
      assert.equal(given, role)
      for (const [id, { method, path, permission }] of ROUTES) {
        const headers = { cookie, [CSRF_HEADER]: csrf, 'content-type': 'application/json' }
        const response = await fetch(`${on.admin.url}${path.replaceAll(/\{\w+\}/g, 'x')}`, { method, headers })
        assert.equal(response.status === 403, !ROLE_PERMISSIONS[role].includes(permission), `${role} on ${id}`)
        assert.notEqual(response.status, 401)
      }
      const forged = await fetch(`${on.admin.url}/v1/notices/test`, { method: 'POST', headers: { cookie } })
      assert.equal(forged.status, 403, 'without the CSRF token')
    }
  })

  test('a sign-in makes a new session id, and another does not end with it', async () => {
    await using on = await at.open()
    const { admin, issuer } = on
    const planted = `sluice_admin=${'A'.repeat(43)}`
    const begun = await begin(admin)
    issuer.idToken = () => issuer.sign({ nonce: begun.nonce })
    const cookie = sessionOf(await finish(admin, { ...begun, cookie: `${begun.cookie}; ${planted}` }))
    assert.notEqual(cookie, planted)
    assert.equal((await readSession(admin, planted)).status, 401)
    const next = sessionOf(await signIn(admin, issuer))
    assert.notEqual(next, cookie)
    assert.equal((await readSession(admin, cookie)).status, 200)
  })

  test('nothing in a request chooses where the browser goes', async () => {
    await using on = await at.open()
    const { admin, issuer } = on
    const asked = await fetch(`${admin.url}${LOGIN}?return_to=https://evil.example`, { redirect: 'manual' })
    assert.deepEqual([asked.status, asked.headers.get('location')], [400, null])
    const begun = await begin(admin)
    issuer.idToken = () => issuer.sign({ nonce: begun.nonce })
    const evil = 'https://evil.example'
    const response = await finish(admin, begun, { return_to: evil, redirect_uri: evil, next: '//evil.example' })
    assert.equal(response.headers.get('location'), '/')
    for (const method of ['POST', 'HEAD', 'PUT'])
      assert.equal((await fetch(`${admin.url}${LOGIN}`, { method, redirect: 'manual' })).status, 405)
  })

  test('a code that looks like a token of ours is a code', async () => {
    await using on = await at.open()
    const { admin, issuer } = on
    const begun = await begin(admin)
    issuer.idToken = () => issuer.sign({ nonce: begun.nonce })
    const code = ['sla', 'abcdefgh01234567'].join('_')
    sessionOf(await finish(admin, begun, { code }))
    assert.equal(issuer.forms[0]?.get('code'), code)
    const long = await finish(admin, await begin(admin), { code: 'c'.repeat(4097) })
    assert.match(await long.text(), /CODE_CHARS_MAX/)
  })

  test('a session ends at its time, and when the configuration no longer gives its role', async () => {
    const clock = createManualClock(Date.now())
    await using on = await at.open({ sessionHours: 1 }, { clock })
    const { admin, issuer, oidc } = on
    const first = sessionOf(await signIn(admin, issuer))
    for (let minutes = 0; minutes < 59; minutes += 20) {
      assert.equal((await readSession(admin, first)).status, 200)
      clock.advance(20 * 60_000)
    }
    assert.equal((await readSession(admin, first)).status, 401, 'after sessionHours')

    const apply = (more: Partial<OidcOptions>): void => {
      const { options } = admin.oidc.current() ?? assert.fail('no sign-in')
      admin.oidc.apply({ ...options, ...more })
    }
    const fresh = async (): Promise<string> => {
      const begun = await begin(admin)
      const iat = Math.floor(clock.nowMs() / 1000)
      issuer.idToken = () => issuer.sign({ nonce: begun.nonce, iat, exp: iat + 300 })
      return sessionOf(await finish(admin, begun))
    }
    let cookie = await fresh()
    apply({ label: 'Other' })
    assert.equal((await readSession(admin, cookie)).status, 200, 'the role is still given')
    apply({ roles: { ...ROLES, ops: 'billing' } })
    assert.equal((await readSession(admin, cookie)).status, 401, 'another role')
    apply({ roles: ROLES })
    assert.equal((await readSession(admin, cookie)).status, 401, 'an ended session stays ended')
    cookie = await fresh()
    apply({ roles: { bosses: 'owner' } })
    assert.equal((await readSession(admin, cookie)).status, 401, 'no role')
    apply({ roles: ROLES })
    cookie = await fresh()
    const begun = await begin(admin)
    apply({ clientId: 'other' })
    assert.equal((await readSession(admin, cookie)).status, 401, 'another client')
    assert.equal((await finish(admin, begun)).status, 400, 'a login that began before')
    apply({ clientId: oidc.clientId })
    cookie = await fresh()
    admin.oidc.apply(undefined)
    assert.equal((await readSession(admin, cookie)).status, 401, 'switched off')
    assert.equal((await fetch(`${admin.url}${LOGIN}`)).status, 404)
  })

  test('a change names the person in the audit log; names cannot pass for administrators of the store', async () => {
    const handlers: Partial<AdminHandlers> = {
      customerAdd: async ({ actor, nowMs, body }) => {
        const { name } = body as { name: string }
        return {
          body: await addCustomer({ store: at.store, random: secureRandom, nowMs, actor }, { name, contact: '' }),
        }
      },
    }
    await using on = await at.open({}, { handlers })
    const { admin, issuer } = on
    const cookie = sessionOf(await signIn(admin, issuer, { name: 'root', sub: 'ü'.repeat(200) }))
    const { csrf_token: csrf = '', id } = await readSession(admin, cookie)
    assert.match(id ?? '', /^oidc:127\.0\.0\.1:\d+#sha256:[0-9a-f]{40}$/)
    const headers = { cookie, [CSRF_HEADER]: csrf, 'content-type': 'application/json' }
    const body = JSON.stringify({ name: 'by-oidc' })
    const made = await fetch(`${admin.url}/v1/customers`, { method: 'POST', headers, body })
    assert.equal(made.status, 200, await made.clone().text())
    const lines: string[] = []
    for await (const line of at.store.auditLines(1)) if (line.includes('by-oidc')) lines.push(line)
    const { actor } = JSON.parse(lines[0] ?? '{}') as { actor: typeof CONTEXT.actor }
    assert.deepEqual(actor.admin, { id, name: 'root', role: 'support', address: '127.0.0.1' })
    assert.equal(actorName(actor), 'oidc:root')
  })

  test('an ID token is no bearer token; the methods of signing in are public; without configuration the paths are 404', async () => {
    await using on = await at.open({ label: 'Example' })
    const jwt = await on.issuer.sign({ nonce: 'n' })
    assert.equal((await on.admin.call('GET', '/v1/me', jwt)).status, 401)
    const methods = async (admin: { url: string }) => {
      const body = (await (await fetch(`${admin.url}/v1/sign-in`)).json()) as { methods: unknown; ways: unknown }
      assert.deepEqual(body.ways, body.methods, 'under their former name too')
      return body.methods
    }
    assert.deepEqual(await methods(on.admin), [{ kind: 'token' }, { kind: 'oidc', label: 'Example', path: LOGIN }])
    await using off = await startTestAdmin(at.store)
    assert.deepEqual(await methods(off), [{ kind: 'token' }])
    for (const path of [LOGIN, CALLBACK]) assert.equal((await fetch(`${off.url}${path}`)).status, 404)
  })
})
