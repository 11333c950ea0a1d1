import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { startTestAdmin } from '../../test/support/admin/start.ts'
import { CONTEXT, type Engines, startEngines } from '../../test/support/store/engines.ts'
import { removeAdmin, rotateAdmin } from '../access/provisioning/admins.ts'
import type { AccessStore } from '../access/store/store.ts'
import { createToken } from '../access/token.ts'
import {
  ADMIN_ROLES,
  ADMIN_ROUTES,
  type AdminRoute,
  type AdminRouteId,
  CSRF_HEADER,
  ROLE_PERMISSIONS,
} from '../contract/admin-routes.ts'
import { createManualClock } from '../core/clock.ts'
import { systemClock } from '../platform/process/clock.ts'
import { secureRandom } from '../platform/process/random.ts'
import type { AdminHandler, AdminHandlers } from './api/handler.ts'

const ROUTES = Object.entries(ADMIN_ROUTES) as [AdminRouteId, AdminRoute][]
const done: AdminHandler = async () => ({ body: { ok: true } })
const allHandlers = Object.fromEntries(ROUTES.map(([id]) => [id, done])) as AdminHandlers

type ErrorBody = { error: { code: string; message: string; fix: string; request_id: string } }
const errorOf = async (response: Response): Promise<ErrorBody['error']> => ((await response.json()) as ErrorBody).error

describe('the admin API', () => {
  let engines: Engines
  let store: AccessStore
  before(async () => {
    engines = await startEngines()
    store = await (await engines.bench('sqlite')).open()
  })
  after(async () => {
    await store[Symbol.asyncDispose]()
    await engines[Symbol.asyncDispose]()
  })
  const on = () => ({ store, random: secureRandom, nowMs: systemClock.nowMs(), actor: CONTEXT.actor })

  test('every role is refused on every route whose permission it does not have, and only there', async () => {
    for (const role of ADMIN_ROLES) {
      // One instance per role, so that its limits are fresh.
      await using admin = await startTestAdmin(store, { handlers: allHandlers })
      const { secret } = await admin.add(`matrix-${role}`, role)
      for (const [id, { method, path, permission }] of ROUTES) {
        const response = await admin.call(method, path.replaceAll(/\{\w+\}/g, 'x'), secret)
        const isAllowed = ROLE_PERMISSIONS[role].includes(permission)
        // A body that is missing is refused after the role is checked.
        assert.equal(response.status === 403, !isAllowed, `${role} on ${id}: ${response.status}`)
        if (isAllowed) assert.ok([200, 400].includes(response.status), `${role} on ${id}: ${response.status}`)
        else assert.match((await errorOf(response)).message, new RegExp(`role ${role} .*"${permission}"`))
      }
    }
  })

  test('expired, revoked, rotated, malformed and customer tokens get the same 401', async () => {
    const clock = createManualClock()
    await using admin = await startTestAdmin(store, { clock })
    const expired = await admin.add('expired', 'owner', 1000)
    const revoked = await admin.add('revoked', 'owner')
    const rotated = await admin.add('rotated', 'owner')
    assert.equal((await admin.call('GET', '/v1/me', expired.secret)).status, 200)
    clock.advance(1000)
    await removeAdmin(on(), { admin: 'revoked' })
    await rotateAdmin(on(), { admin: 'rotated' })
    const messages = new Set<string>()
    for (const token of [expired.secret, revoked.secret, rotated.secret, createToken(secureRandom).secret, 'x']) {
      const response = await admin.call('GET', '/v1/me', token)
      assert.equal(response.status, 401)
      messages.add((await errorOf(response)).message)
    }
    assert.equal(messages.size, 1)
    const none = await fetch(`${admin.url}/v1/me`)
    assert.equal(none.status, 401)
    for (const secret of [expired.secret, revoked.secret, rotated.secret]) assert.ok(!admin.log().includes(secret))
  })

  test('failed tokens of an address have a budget, which does not lock out a valid one', async () => {
    const clock = createManualClock()
    await using admin = await startTestAdmin(store, { clock })
    const { secret } = await admin.add('budget', 'read-only')
    for (let n = 0; n < 10; n++) assert.equal((await admin.call('GET', '/v1/me', 'wrong')).status, 401)
    const limited = await admin.call('GET', '/v1/me', 'wrong')
    assert.equal(limited.status, 429)
    assert.ok(Number(limited.headers.get('retry-after')) >= 1)
    assert.match((await errorOf(limited)).message, /failedTokensPerAddress/)
    assert.equal((await admin.call('GET', '/v1/me', secret)).status, 200)
    clock.advance(60_000)
    assert.equal((await admin.call('GET', '/v1/me', 'wrong')).status, 401)
  })

  test('requests of one administrator are limited by name', async () => {
    await using admin = await startTestAdmin(store, { clock: createManualClock() })
    const { secret } = await admin.add('busy', 'read-only')
    let last = await admin.call('GET', '/v1/me', secret)
    for (let n = 0; n < 200; n++) last = await admin.call('GET', '/v1/me', secret)
    assert.equal(last.status, 429)
    assert.match((await errorOf(last)).message, /requestsPerAdminPerSecond/)
  })

  test('a session needs its CSRF token and origin for changes, and ends with sign-out, idle time, rotation', async () => {
    const clock = createManualClock()
    await using admin = await startTestAdmin(store, { clock, handlers: allHandlers })
    const { secret } = await admin.add('browser', 'owner')
    const signIn = async (token: string) => {
      const response = await fetch(`${admin.url}/v1/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token }),
      })
      assert.equal(response.status, 201)
      const set = response.headers.get('set-cookie') ?? ''
      assert.match(set, /^sluice_admin=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
      const { csrf_token: csrf } = (await response.json()) as { csrf_token: string }
      return { cookie: set.split(';')[0] as string, csrf }
    }
    const { cookie, csrf } = await signIn(secret)
    const change = (headers: Record<string, string>) =>
      fetch(`${admin.url}/v1/upstreams/x/drain`, { method: 'POST', headers: { cookie, ...headers } })
    assert.equal((await fetch(`${admin.url}/v1/me`, { headers: { cookie } })).status, 200)
    assert.equal((await errorOf(await change({}))).code, 'csrf')
    assert.equal((await errorOf(await change({ [CSRF_HEADER]: 'x' }))).code, 'csrf')
    assert.equal((await change({ [CSRF_HEADER]: csrf, origin: 'http://evil.example' })).status, 403)
    assert.equal((await change({ [CSRF_HEADER]: csrf, origin: 'null' })).status, 403)
    // Another port of the same host is the same site, and another origin.
    assert.equal((await change({ [CSRF_HEADER]: csrf, origin: 'http://127.0.0.1:1' })).status, 403)
    assert.equal((await change({ [CSRF_HEADER]: csrf, 'sec-fetch-site': 'same-site' })).status, 403)
    assert.equal((await change({ [CSRF_HEADER]: csrf, origin: admin.url })).status, 200)
    const shown = (await (await fetch(`${admin.url}/v1/session`, { headers: { cookie } })).json()) as object
    assert.equal((shown as { csrf_token: string }).csrf_token, csrf)
    const head = await fetch(`${admin.url}/v1/session`, { method: 'HEAD', headers: { cookie } })
    assert.deepEqual([head.status, await head.text()], [200, ''])
    const put = await fetch(`${admin.url}/v1/session`, { method: 'PUT', headers: { cookie } })
    assert.deepEqual([put.status, put.headers.get('allow')], [405, 'POST, GET, HEAD, DELETE'])

    const out = { method: 'DELETE', headers: { cookie, [CSRF_HEADER]: csrf } }
    assert.equal((await fetch(`${admin.url}/v1/session`, out)).status, 200)
    assert.equal((await fetch(`${admin.url}/v1/me`, { headers: { cookie } })).status, 401, 'replayed after sign-out')

    const idle = await signIn(secret)
    clock.advance(30 * 60_000)
    assert.equal((await fetch(`${admin.url}/v1/me`, { headers: { cookie: idle.cookie } })).status, 401)
    const old = await signIn(secret)
    await rotateAdmin(on(), { admin: 'browser' })
    assert.equal((await fetch(`${admin.url}/v1/me`, { headers: { cookie: old.cookie } })).status, 401)
    for (const text of [secret, csrf, cookie.split('=')[1] as string]) assert.ok(!admin.log().includes(text))
  })

  test('a name that resolves to the listener is refused (DNS rebinding), an address is not', async () => {
    await using admin = await startTestAdmin(store)
    const statusFor = async (host: string): Promise<number | undefined> => {
      const sent = httpRequest({ port: admin.port, host: '127.0.0.1', path: '/v1/me', headers: { host } }).end()
      const [response] = (await once(sent, 'response')) as [{ statusCode?: number; resume(): void }]
      response.resume()
      return response.statusCode
    }
    assert.equal(await statusFor(`rebound.example:${admin.port}`), 421)
    assert.equal(await statusFor(`localhost:${admin.port}`), 401)
    assert.equal(await statusFor(`127.0.0.1:${admin.port}`), 401)
  })

  test('a token in the URL is refused and not logged', async () => {
    await using admin = await startTestAdmin(store)
    const { secret } = await admin.add('in-url', 'owner')
    for (const path of [`/v1/me?token=${secret}`, `/v1/customers/${secret}`, `/v1/me?search=Bearer%20${secret}`]) {
      const response = await fetch(`${admin.url}${path}`)
      assert.equal((await errorOf(response)).code, 'token-in-url')
    }
    assert.ok(admin.log().includes('admin request') && !admin.log().includes(secret))
    for (const name of ['tesla_production', 'visla_analytics', 'sla_platinum01'])
      assert.notEqual((await errorOf(await fetch(`${admin.url}/v1/customers/${name}`))).code, 'token-in-url', name)
  })

  test('responses cannot be framed, sniffed, cached or read by other origins', async () => {
    await using admin = await startTestAdmin(store)
    const { headers } = await fetch(`${admin.url}/v1/me`, { headers: { origin: 'http://evil.example' } })
    assert.match(headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/)
    assert.equal(headers.get('x-frame-options'), 'DENY')
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('referrer-policy'), 'no-referrer')
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('cross-origin-opener-policy'), 'same-origin')
    assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin')
    assert.equal(headers.get('access-control-allow-origin'), null)
    assert.equal((await fetch(`${admin.url}/v1/me`, { method: 'OPTIONS' })).status, 405)
  })

  test('unknown members, query parameters and paths, large bodies and other types are refused by name', async () => {
    await using admin = await startTestAdmin(store, { handlers: allHandlers })
    const { secret } = await admin.add('bodies', 'owner')
    const post = (body: unknown) => admin.call('POST', '/v1/customers', secret, { body })
    assert.equal((await post({ name: 'acme' })).status, 200)
    assert.match((await errorOf(await post({ name: 'acme', nmae: 1 }))).message, /nmae/)
    const polluted = JSON.parse('{"name":"acme","__proto__":{"a":1}}') as object
    assert.equal((await post(polluted)).status, 400)
    assert.match((await errorOf(await admin.call('GET', '/v1/me?a=1', secret))).message, /"a"/)
    assert.equal((await admin.call('GET', '/v1/nothing', secret)).status, 404)
    assert.equal((await admin.call('PUT', '/v1/customers', secret)).headers.get('allow'), 'GET, HEAD, POST')
    assert.equal((await post({ name: 'x'.repeat(70_000) })).status, 413)
    const plain = { body: { name: 'a' }, headers: { 'content-type': 'text/plain' } }
    assert.equal((await admin.call('POST', '/v1/customers', secret, plain)).status, 415)
    assert.equal((await admin.call('GET', '/v1/customers/%zz', secret)).status, 400)
  })

  test('rubbish in a pipeline ends the connection and nothing else', async () => {
    await using admin = await startTestAdmin(store)
    const { secret } = await admin.add('pipeline', 'owner')
    const socket = connect(admin.port, '127.0.0.1')
    socket.end(`GET /v1/me HTTP/1.1\r\nhost: localhost\r\n\r\n\u0000\u0001rubbish\r\n\r\n`)
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    assert.match(text, /^HTTP\/1\.1 401 .*HTTP\/1\.1 400 .*connection: close/s)
    assert.equal((await admin.call('GET', '/v1/me', secret)).status, 200)
  })

  test('a repeated key performs a change once; another body, a secret and a failure each have their rule', async () => {
    let calls = 0
    let failure: Error | undefined
    const count: AdminHandler = async () => {
      calls += 1
      if (failure !== undefined) throw failure
      return { status: 201, body: { calls } }
    }
    await using admin = await startTestAdmin(store, { handlers: { customerAdd: count } })
    const { secret } = await admin.add('repeat', 'owner')
    const post = (key: string, name: string) =>
      admin.call('POST', '/v1/customers', secret, { body: { name }, headers: { 'idempotency-key': key } })
    assert.equal((await post('k1', 'acme')).status, 201)
    const again = await post('k1', 'acme')
    assert.deepEqual([again.status, await again.json(), calls], [201, { calls: 1 }, 1])
    assert.equal((await post('k1', 'other')).status, 422)
    assert.equal((await post('x'.repeat(129), 'acme')).status, 400)
    failure = new Error('unexpected')
    assert.equal((await post('k2', 'acme')).status, 500)
    failure = undefined
    assert.deepEqual([(await post('k2', 'acme')).status, calls], [500, 2], 'an unknown outcome is not repeated')

    const add = (key: string) =>
      admin.call('POST', '/v1/admins', secret, {
        body: { name: 'made-once', role: 'billing' },
        headers: { 'idempotency-key': key },
      })
    const made = (await (await add('k3')).json()) as { id: string; token: string }
    assert.match(made.token, /^sla_/)
    const shown = await errorOf(await add('k3'))
    assert.equal(shown.code, 'secret-shown')
    assert.ok(shown.message.includes(made.id) && !JSON.stringify(shown).includes(made.token))
    assert.equal((await store.find('admins', { name: 'made-once' })).length, 1)
    const lines: string[] = []
    for await (const line of store.auditLines(1)) if (line.includes(made.id)) lines.push(line)
    const { actor } = JSON.parse(lines[0] as string) as { actor: { admin: { name: string; address: string } } }
    assert.equal(lines.length, 1)
    assert.deepEqual([actor.admin.name, actor.admin.address], ['repeat', '127.0.0.1'])
    assert.ok(!admin.log().includes(made.token))
  })

  test('a route without a handler responds 501, a dry run shows no token', async () => {
    await using admin = await startTestAdmin(store)
    const { secret } = await admin.add('partial', 'owner')
    assert.equal((await errorOf(await admin.call('GET', '/v1/notices', secret))).code, 'not-available')
    const body = { name: 'dry', role: 'owner' }
    const dry = await admin.call('POST', '/v1/admins?dry_run=true', secret, { body })
    assert.equal('token' in ((await dry.json()) as object), false)
    assert.deepEqual(await store.find('admins', { name: 'dry' }), [])
  })
})
