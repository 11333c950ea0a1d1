import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { startTestAdmin } from '../../test/support/admin/start.ts'
import { openSqliteStore, type SqliteStore } from '../../test/support/store/engines.ts'
import type { AccessStore } from '../access/store/store.ts'
import { ADMIN_ROLES, SIGN_IN_PATH } from '../contract/admin-routes.ts'
import { createManualClock } from '../core/clock.ts'
import { createSeededRandom } from '../core/random.ts'
import { createSessions, type SessionOwner, sessionCookie } from './auth/sessions.ts'

describe('the admin API under attack', () => {
  let opened: SqliteStore
  let store: AccessStore
  before(async () => {
    opened = await openSqliteStore()
    store = opened.store
  })
  after(() => opened[Symbol.asyncDispose]())
  const adminsNow = async () =>
    (await store.list('admins')).map(({ name, role, state, sha256 }) => `${name} ${role} ${state} ${sha256}`).toSorted()

  /** Sends a head as it is, and returns the status of the first response. */
  async function raw(port: number, lines: readonly string[], host = 'localhost'): Promise<number> {
    const socket = connect(port, '127.0.0.1')
    socket.end([...lines, `host: ${host}`, 'connection: close', '', ''].join('\r\n'))
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])
  }

  test('browsers that use TLS up to a proxy get cookies for TLS alone, at the host of the public address', async () => {
    for (const [publicUrl, isSecure, status] of [
      ['https://ops.example.net', true, 401],
      ['http://localhost:9470', false, 421],
    ] as const) {
      await using admin = await startTestAdmin(store, { publicUrl })
      const { secret } = await admin.add(`of-${isSecure}`, 'read-only')
      const opened = await fetch(`${admin.url}/v1/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token: secret }),
      })
      assert.equal(opened.status, 201)
      assert.equal(/; Secure/.test(opened.headers.get('set-cookie') ?? ''), isSecure)
      assert.equal(await raw(admin.port, ['GET /v1/me HTTP/1.1'], 'ops.example.net'), status)
    }
  })

  test('no role but owner adds, rotates or removes administrators, in any form of the request', async () => {
    await using admin = await startTestAdmin(store)
    const owner = await admin.add('boss', 'owner')
    const { id } = owner.record
    for (const role of ADMIN_ROLES.filter((each) => each !== 'owner')) {
      const { secret, record } = await admin.add(`low-${role}`, role)
      const before = await adminsNow()
      const made = { body: { name: `raised-${role}`, role: 'owner' } }
      const attempts: [string, string, object?][] = [
        ['POST', '/v1/admins', made],
        ['POST', '/v1/admins?dry_run=true', made],
        ['POST', '/v1/admins', { ...made, headers: { 'idempotency-key': 'k' } }],
        ['GET', '/v1/admins', { headers: { 'x-http-method-override': 'POST' } }],
        ['POST', '/v1/admins/', made],
        ['POST', '/v1/%61dmins', made],
        ['POST', '//v1/admins', made],
        ['POST', '/V1/admins', made],
        ['POST', '/v1/customers/../admins', made],
        ['POST', '/v1/me', made],
        ['PATCH', `/v1/admins/${record.id}`, { body: { role: 'owner' } }],
        ['PATCH', '/v1/me', { body: { role: 'owner' } }],
        ['POST', `/v1/admins/${record.id}/rotate`],
        ['POST', `/v1/admins/${id}/rotate`],
        ['POST', '/v1/admins/boss/rotate'],
        ['DELETE', `/v1/admins/${id}`],
        ['DELETE', '/v1/admins/boss'],
      ]
      for (const [method, path, more] of attempts) {
        const { status } = await admin.call(method, path, secret, more)
        assert.ok([403, 404, 405].includes(status), `${role}: ${method} ${path}: ${status}`)
      }
      assert.deepEqual(await adminsNow(), before, role)
    }
    assert.equal((await admin.call('GET', '/v1/me', owner.secret)).status, 200)
  })

  test('two credentials are none: a header twice, a cookie twice', async () => {
    await using admin = await startTestAdmin(store)
    const { secret } = await admin.add('twice', 'owner')
    const bearer = `authorization: Bearer ${secret}`
    assert.equal(await raw(admin.port, ['GET /v1/me HTTP/1.1', bearer]), 200)
    assert.notEqual(await raw(admin.port, ['GET /v1/me HTTP/1.1', bearer, bearer]), 200)
    assert.notEqual(await raw(admin.port, ['GET /v1/me HTTP/1.1', 'authorization: Bearer x', bearer]), 200)
    const signedIn = await fetch(`${admin.url}/v1/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: secret }),
    })
    const cookie = (signedIn.headers.get('set-cookie') ?? '').split(';')[0]
    assert.equal(await raw(admin.port, ['GET /v1/me HTTP/1.1', `cookie: ${cookie}`]), 200)
    assert.equal(await raw(admin.port, ['GET /v1/me HTTP/1.1', `cookie: ${cookie}; ${cookie}`]), 401)
    assert.equal(await raw(admin.port, ['GET /v1/me HTTP/1.1', `cookie: ${cookie}; sluice_admin=other`]), 401)
    // A wrong token is not replaced by a valid session.
    assert.equal(await raw(admin.port, ['GET /v1/me HTTP/1.1', `cookie: ${cookie}`, 'authorization: Bearer x']), 401)
  })

  test('requests are limited by address before anything is read of them, and an administrator has limits of its own', async () => {
    const clock = createManualClock()
    await using admin = await startTestAdmin(store, { clock, trustedProxies: ['127.0.0.1'] })
    const from = (address: string, path = SIGN_IN_PATH) =>
      fetch(`${admin.url}${path}`, { headers: { 'x-forwarded-for': address } })
    /** So many requests, some at a time. */
    const statuses = async (count: number, send: () => Promise<Response>) => {
      const seen = new Set<number>()
      for (let sent = 0; sent < count; sent += 20)
        for (const { status } of await Promise.all(Array.from({ length: 20 }, send))) seen.add(status)
      return [...seen]
    }
    assert.deepEqual(await statuses(400, () => from('192.0.2.1')), [200])
    const limited = await from('192.0.2.1', '/v1/me')
    assert.equal(limited.status, 429)
    assert.match(await limited.text(), /requestsPerAddressPerSecond/)
    assert.equal((await from('192.0.2.2')).status, 200)

    const [ana, ben] = [await admin.add('limited', 'read-only'), await admin.add('unlimited', 'read-only')]
    const me = (token: string) => admin.call('GET', '/v1/me', token, { headers: { 'x-forwarded-for': '192.0.2.3' } })
    assert.deepEqual(await statuses(200, () => me(ana.secret)), [200])
    assert.equal((await me(ana.secret)).status, 429)
    assert.equal((await me(ben.secret)).status, 200)
  })

  test('a query names each parameter once, a flag is true or false, and a route without a body takes none', async () => {
    await using admin = await startTestAdmin(store, {
      handlers: { customerList: async () => ({ body: { items: [] } }) },
    })
    const { secret } = await admin.add('queries', 'owner')
    const refused = async (method: string, path: string, body?: unknown) => {
      const response = await admin.call(method, path, secret, body === undefined ? {} : { body })
      assert.equal(response.status, 400, path)
      return ((await response.json()) as { error: { message: string } }).error.message
    }
    assert.match(await refused('GET', '/v1/customers?limit=1&limit=2'), /"limit" is given twice/)
    assert.match(await refused('POST', '/v1/admins/x/rotate?dry_run=1'), /dry_run is not true or false/)
    assert.match(await refused('POST', '/v1/admins/x/rotate', { role: 'owner' }), /takes no body/)
    assert.match(await refused('POST', '/v1/admins/x/rotate', ['role']), /takes no body/)
  })

  test('the log has the path of the route, and not what the request has in its place', async () => {
    await using admin = await startTestAdmin(store)
    const { secret } = await admin.add('paths', 'owner')
    await (await admin.call('DELETE', '/v1/admins/name-of-somebody?dry_run=true', secret)).text()
    assert.match(admin.log(), /"path":"\/v1\/admins\/\{admin\}"/)
    assert.doesNotMatch(admin.log(), /name-of-somebody/)
  })

  test('lines that fail midway end without their end', async () => {
    async function* failing(): AsyncGenerator<string> {
      for (let at = 0; at < 1000; at++) yield `${'x'.repeat(99)}\n`
      throw new Error('the store has failed')
    }
    await using admin = await startTestAdmin(store, {
      handlers: { usageExport: async () => ({ body: '', lines: failing(), contentType: 'text/csv' }) },
    })
    const { secret } = await admin.add('lines', 'owner')
    const response = await admin.call('GET', '/v1/usage/export', secret)
    assert.equal(response.status, 200)
    await assert.rejects(response.text())
  })
})

describe('sessions', () => {
  const owner = (id: string): SessionOwner => ({ kind: 'token', adminId: id, tokenSha256: 'x' })
  const setUp = () => {
    const clock = createManualClock()
    return { clock, sessions: createSessions({ clock, random: createSeededRandom(1) }) }
  }

  test('of an administrator are at most 20, of all 1000: the oldest ends', () => {
    const { sessions } = setUp()
    const own = Array.from({ length: 21 }, () => sessions.open(owner('adm_1')).id)
    assert.equal(sessions.use(own[0] as string), undefined)
    assert.ok(own.slice(1).every((id) => sessions.use(id) !== undefined))
    const others = Array.from({ length: 1000 }, (_, at) => sessions.open(owner(`adm_x${at}`)).id)
    assert.equal(sessions.size, 1000)
    assert.equal(sessions.use(own[20] as string), undefined)
    assert.ok(sessions.use(others[0] as string) !== undefined)
  })

  test('end after 30 minutes without a request, and after 12 hours with requests', () => {
    const { clock, sessions } = setUp()
    const { id } = sessions.open(owner('adm_1'))
    for (let minutes = 0; minutes < 12 * 60 - 29; minutes += 29) {
      assert.ok(sessions.use(id) !== undefined, `${minutes}`)
      clock.advance(29 * 60_000)
    }
    clock.advance(29 * 60_000)
    assert.equal(sessions.use(id), undefined)
    assert.equal(sessions.size, 0)
  })

  test('have a cookie that only TLS carries where browsers use TLS', () => {
    assert.match(sessionCookie('x', { isSecure: true }), /; HttpOnly; SameSite=Strict; Secure$/)
    assert.doesNotMatch(sessionCookie('x', { isSecure: false }), /Secure/)
  })
})
