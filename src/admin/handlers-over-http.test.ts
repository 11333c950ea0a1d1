import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { openHandlers, type TestHandlers } from '../../test/support/admin/handlers.ts'
import { startTestAdmin } from '../../test/support/admin/start.ts'
import { ServiceError } from '../core/error.ts'
import { ENCODING_REFUSED } from '../platform/http/request-headers.ts'

type Record = { id: string; plan: string; token?: string }
type Refusal = { error: { code: string; message: string } }

describe('changes over HTTP', () => {
  let folder: string
  let api: TestHandlers
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-admin-http-'))
    api = await openHandlers(folder)
  })
  after(async () => {
    await api[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  async function start(name: string, requestTimeoutMs?: number) {
    const admin = await startTestAdmin(api.store, {
      handlers: api.handlers,
      ...(requestTimeoutMs === undefined ? {} : { requestTimeoutMs }),
    })
    const { secret } = await admin.add(name, 'owner')
    const send = (method: string, path: string, body?: unknown, headers: { [name: string]: string } = {}) =>
      admin.call(method, path, secret, { body, headers })
    return { ...admin, secret, send, [Symbol.asyncDispose]: () => admin[Symbol.asyncDispose]() }
  }

  test('a change of a record that somebody else has changed is refused with 412 and changes nothing', async () => {
    await using admin = await start('matching')
    assert.equal((await admin.send('POST', '/v1/customers', { name: 'acme' })).status, 201)
    assert.equal((await admin.send('POST', '/v1/subscriptions', { name: 'one', customer: 'acme' })).status, 201)
    const seen = (await admin.send('GET', '/v1/subscriptions/one')).headers.get('etag') ?? ''
    assert.match(seen, /^"\d+"$/)
    const changed = await admin.send('PATCH', '/v1/subscriptions/one', { plan: 'build' }, { 'if-match': seen })
    assert.equal(changed.status, 200)
    const now = changed.headers.get('etag') ?? ''
    assert.notEqual(now, seen)
    const late = await admin.send('PATCH', '/v1/subscriptions/one', { plan: 'grow' }, { 'if-match': seen })
    assert.deepEqual([late.status, ((await late.json()) as Refusal).error.code], [412, 'revision-changed'])
    const shown = await admin.send('GET', '/v1/subscriptions/one')
    assert.deepEqual([shown.headers.get('etag'), ((await shown.json()) as Record).plan], [now, 'build'])
    const wrong = await admin.send('PATCH', '/v1/subscriptions/one', { plan: 'grow' }, { 'if-match': 'x' })
    assert.equal(wrong.status, 400)
  })

  test('a change that cannot be conditional is refused with If-Match, and not made unconditionally', async () => {
    await using admin = await start('unconditional')
    await admin.send('POST', '/v1/customers', { name: 'conditional' })
    const head = async () => (await api.store.auditHead()).seq
    const before = await head()
    for (const [method, path, body] of [
      ['POST', '/v1/customers', { name: 'another' }],
      ['POST', '/v1/notes', { subject: 'conditional', text: 'seen at revision 7' }],
      ['POST', '/v1/admins/unconditional/rotate', undefined],
      ['POST', '/v1/upstreams/n1/drain', undefined],
    ] as const) {
      const refused = await admin.send(method, path, body, { 'if-match': '"7"' })
      assert.equal(refused.status, 400, path)
      assert.match(((await refused.json()) as Refusal).error.message, /takes no If-Match/, path)
    }
    assert.equal(await head(), before)
    assert.equal((await admin.send('POST', '/v1/customers', { name: 'any' }, { 'if-match': '*' })).status, 201)
  })

  test('a compressed body is refused as such, and one that is not UTF-8 is not stored with other characters', async () => {
    await using admin = await start('encodings')
    const head = async () => (await api.store.auditHead()).seq
    const before = await head()
    async function post(body: Uint8Array<ArrayBuffer>, encoding?: string): Promise<[number, string]> {
      const headers = { authorization: `Bearer ${admin.secret}`, 'content-type': 'application/json' }
      const response = await fetch(`${admin.url}/v1/customers`, {
        method: 'POST',
        headers: encoding === undefined ? headers : { ...headers, 'content-encoding': encoding },
        body,
      })
      return [response.status, ((await response.json()) as Partial<Refusal>).error?.message ?? '']
    }
    const plain = new TextEncoder().encode('{"name":"encoded","contact":"?"}')
    assert.deepEqual(await post(new Uint8Array(gzipSync(plain)), 'gzip'), [415, ENCODING_REFUSED])
    assert.deepEqual(await post(plain, 'gzip'), [415, ENCODING_REFUSED])
    const latin1 = plain.map((byte) => (byte === 0x3f ? 0xe9 : byte))
    assert.deepEqual(await post(latin1), [400, 'the body is not UTF-8'])
    assert.equal(await head(), before)
    assert.equal((await post(plain, 'identity'))[0], 201)
  })

  test('a dry run has the status of a change that creates nothing, and is refused where the change would be', async () => {
    await using admin = await start('dry')
    await admin.send('POST', '/v1/customers', { name: 'dry' })
    for (const [path, body] of [
      ['/v1/customers', { name: 'dry-2' }],
      ['/v1/subscriptions', { name: 'dry-sub', customer: 'dry' }],
      ['/v1/notes', { subject: 'dry', text: 'x' }],
      ['/v1/admins', { name: 'dry-admin', role: 'read-only' }],
    ] as const)
      assert.equal((await admin.send('POST', `${path}?dry_run=true`, body)).status, 200, path)
    const billingId = '/v1/customers/dry/billing-id?dry_run=true'
    const stale = { 'if-match': '"999999999"' }
    assert.equal((await admin.send('PUT', billingId, { billing_id: 'b' }, stale)).status, 412)
    const etag = (await admin.send('GET', '/v1/customers/dry')).headers.get('etag') ?? ''
    assert.equal((await admin.send('PUT', billingId, { billing_id: 'b' }, { 'if-match': etag })).status, 200)
    assert.equal((await admin.send('DELETE', '/v1/connections/none?dry_run=true')).status, 404)
  })

  test('a repeated change is made once, and a repeated secret is not shown again', async () => {
    await using admin = await start('repeating')
    const lines = async () => (await api.store.auditHead()).seq
    const key = { 'idempotency-key': 'order-1' }
    const before = await lines()
    const first = await admin.send('POST', '/v1/customers', { name: 'once' }, key)
    const again = await admin.send('POST', '/v1/customers', { name: 'once' }, key)
    assert.deepEqual([first.status, again.status], [201, 201])
    assert.equal(again.headers.get('idempotency-replayed'), 'true')
    assert.deepEqual(await again.json(), await first.json())
    assert.equal(await lines(), before + 1)

    const body = { name: 'once-sub', customer: 'once' }
    const [made, second] = await Promise.all([
      admin.send('POST', '/v1/subscriptions', body, { 'idempotency-key': 'order-2' }),
      admin.send('POST', '/v1/subscriptions', body, { 'idempotency-key': 'order-2' }),
    ])
    const statuses = [made.status, second.status].toSorted((a, b) => a - b)
    assert.deepEqual(statuses, [201, 409])
    const created = (await (made.status === 201 ? made : second).json()) as Record
    const repeated = await admin.send('POST', '/v1/subscriptions', body, { 'idempotency-key': 'order-2' })
    const text = await repeated.text()
    assert.equal((JSON.parse(text) as Refusal).error.code, 'secret-shown')
    assert.ok(created.token !== undefined && text.includes(created.id) && !text.includes(created.token))
    assert.equal((await api.store.find('tokens', { subscriptionId: created.id })).length, 1)
    assert.equal(await lines(), before + 2)
  })

  test('a change is reported as made although the store cannot be read after it, and a repetition does not make it again', async (t) => {
    await using admin = await start('unread')
    const { change, get, billing } = api.store
    const { setBillingId } = billing
    let isLost = false
    async function lostAfter<T>(committed: Promise<T>): Promise<T> {
      const result = await committed
      isLost = true
      return result
    }
    t.mock.method(api.store, 'change', (...args: Parameters<typeof change>) => lostAfter(change(...args)))
    t.mock.method(billing, 'setBillingId', (...args: Parameters<typeof setBillingId>) =>
      lostAfter(setBillingId(...args)),
    )
    t.mock.method(api.store, 'get', (...args: Parameters<typeof get>) => {
      if (isLost) throw new ServiceError('store-unavailable', 'the connection was lost')
      return get(...args)
    })
    async function send(method: string, path: string, body?: unknown) {
      isLost = false
      const sent = () => admin.send(method, path, body, { 'idempotency-key': `${method} ${path}`.replaceAll(' ', '-') })
      const first = await sent()
      isLost = false
      const again = await sent()
      return { first, again, record: (await first.json()) as Record & { [name: string]: unknown } }
    }
    const customer = await send('POST', '/v1/customers', { name: 'unread' })
    assert.deepEqual([customer.first.status, customer.again.status, customer.record['state']], [201, 201, 'active'])
    assert.equal(customer.first.headers.get('etag'), null, 'the revision is not known')

    const products = ['bundle', 'indexer', 'dedicated-node']
    const made = await send('POST', '/v1/subscriptions', { name: 'unread-sub', customer: 'unread', products })
    assert.deepEqual([made.first.status, made.record['customer'], made.record['state']], [201, 'unread', 'active'])
    assert.ok(typeof made.record.token === 'string' && made.record['indexer'] !== undefined)
    assert.equal(((await made.again.json()) as Refusal).error.code, 'secret-shown')

    await send('POST', '/v1/nodes', { name: 'unread-node', rpc: 'http://8.8.8.8:8899' })
    const changes: [method: string, path: string, body?: unknown][] = [
      ['PATCH', '/v1/customers/unread', { contact: 'ops@unread.example' }],
      ['PUT', '/v1/customers/unread/billing-id', { billing_id: 'cus_1' }],
      ['POST', '/v1/nodes/unread-node/assign', { subscription: 'unread-sub' }],
      ['POST', '/v1/subscriptions/unread-sub/suspend'],
      ['DELETE', '/v1/customers/unread?force=true'],
    ]
    for (const [method, path, body] of changes) {
      const { first, again } = await send(method, path, body)
      assert.deepEqual([first.status, again.status], [200, 200], path)
      assert.equal(again.headers.get('idempotency-replayed'), 'true', path)
    }
  })

  test('a dedicated node that is assigned is removed with force=true only', async () => {
    await using admin = await start('forcing')
    await admin.send('POST', '/v1/customers', { name: 'nodes' })
    const products = ['bundle', 'dedicated-node']
    assert.equal(
      (await admin.send('POST', '/v1/subscriptions', { name: 'owner', customer: 'nodes', products })).status,
      201,
    )
    assert.equal((await admin.send('POST', '/v1/nodes', { name: 'big', rpc: 'http://8.8.8.8:8899' })).status, 201)
    assert.equal((await admin.send('POST', '/v1/nodes/big/assign', { subscription: 'owner' })).status, 200)
    assert.ok((await admin.send('DELETE', '/v1/nodes/big')).status >= 400)
    assert.equal((await admin.send('DELETE', '/v1/nodes/big?force=true')).status, 200)
  })

  test('a body that does not arrive in time ends its connection, changes nothing and is not counted as too large', async () => {
    await using admin = await start('slow', 300)
    const { seq } = await api.store.auditHead()
    const socket = connect(admin.port, '127.0.0.1')
    socket.write(
      `POST /v1/customers HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${admin.secret}\r\n` +
        'content-type: application/json\r\ncontent-length: 30\r\n\r\n{"name":"sl',
    )
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    await once(socket, 'close')
    assert.match(text, /^HTTP\/1\.1 408 /)
    // The handler of the slow request has ended before the response to a later one.
    assert.equal((await admin.send('GET', '/v1/me')).status, 200)
    assert.equal((await api.store.auditHead()).seq, seq)
    const refused = (reason: string) => admin.registry.value('sluice_admin_refused_total', { reason }) ?? 0
    assert.deepEqual([refused('body-too-large'), refused('invalid-value')], [0, 1])
  })
})
