import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { startTestAdmin } from '../../../test/support/admin/start.ts'
import { openSqliteStore, type SqliteStore } from '../../../test/support/store/engines.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { createManualClock } from '../../core/clock.ts'
import { CommitInDoubt } from '../../platform/db/sql.ts'
import type { AdminHandler } from './handler.ts'
import { createIdempotency, type KeptReply } from './idempotency.ts'

describe('an Idempotency-Key over HTTP', () => {
  let opened: SqliteStore
  let store: AccessStore
  before(async () => {
    opened = await openSqliteStore()
    store = opened.store
  })
  after(() => opened[Symbol.asyncDispose]())

  /** Handlers that count their calls and respond with what only the caller may read. */
  async function rig() {
    const calls: string[] = []
    const responding =
      (name: string): AdminHandler =>
      async ({ actor, isDryRun }) => {
        calls.push(isDryRun ? `${name} dry` : name)
        return { body: { for: actor.admin?.name, name, call: calls.length } }
      }
    const admin = await startTestAdmin(store, {
      handlers: {
        customerAdd: responding('customerAdd'),
        customerChange: responding('customerChange'),
        customerRemove: responding('customerRemove'),
        productAdd: responding('productAdd'),
        productRemove: responding('productRemove'),
        noteAdd: responding('noteAdd'),
      },
    })
    return { ...admin, calls, [Symbol.asyncDispose]: () => admin[Symbol.asyncDispose]() }
  }
  const KEY = { 'idempotency-key': 'order-1' }

  test('of another administrator gives nothing of its response, and performs the own request', async () => {
    await using on = await rig()
    const [ana, ben] = [await on.add('ana', 'owner'), await on.add('ben', 'billing')]
    const note = { body: { subject: 'acme', text: 'x' }, headers: KEY }
    const first = await on.call('POST', '/v1/notes', ana.secret, note)
    assert.deepEqual(await first.json(), { for: 'ana', name: 'noteAdd', call: 1 })
    const other = await on.call('POST', '/v1/notes', ben.secret, note)
    assert.equal(other.headers.get('idempotency-replayed'), null)
    assert.deepEqual(await other.json(), { for: 'ben', name: 'noteAdd', call: 2 })
    // A role that may not make the change does not get a kept response either.
    const add = { body: { name: 'acme' }, headers: { 'idempotency-key': 'order-2' } }
    assert.equal((await on.call('POST', '/v1/customers', ana.secret, add)).status, 200)
    assert.equal((await on.call('POST', '/v1/customers', ben.secret, add)).status, 403)
    assert.equal(on.calls.length, 3)
  })

  test('is for one method, target, revision and body', async () => {
    await using on = await rig()
    const { secret } = await on.add('cleo', 'owner')
    const send = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
      (
        await on.call(method, path, secret, {
          ...(body === undefined ? {} : { body }),
          headers: { ...KEY, ...headers },
        })
      ).status
    const change = { name: 'b' }
    assert.equal(await send('PATCH', '/v1/customers/a', change), 200)
    assert.equal(await send('PATCH', '/v1/customers/a', change), 200)
    assert.deepEqual(on.calls, ['customerChange'])
    const others: [string, ...Parameters<typeof send>][] = [
      ['another record', 'PATCH', '/v1/customers/b', change],
      ['another method', 'DELETE', '/v1/customers/a'],
      ['another query', 'DELETE', '/v1/customers/a?force=true'],
      ['another route', 'POST', '/v1/customers', change],
      ['another body', 'PATCH', '/v1/customers/a', { name: 'c' }],
      ['another revision', 'PATCH', '/v1/customers/a', change, { 'if-match': '"7"' }],
    ]
    for (const [what, ...request] of others) assert.equal(await send(...request), 422, what)
    // These two differ by the method alone.
    const [product, key] = ['/v1/subscriptions/a/products/indexer', { 'idempotency-key': 'order-3' }]
    assert.equal(await send('PUT', product, undefined, key), 200)
    assert.equal(await send('DELETE', product, undefined, key), 422)
    // And these by the target alone.
    assert.equal(await send('PUT', '/v1/subscriptions/b/products/indexer', undefined, key), 422)
    assert.deepEqual(on.calls, ['customerChange', 'productAdd'])
  })

  test('of a dry run is not kept: the change that follows with it is made', async () => {
    await using on = await rig()
    const { secret } = await on.add('dora', 'owner')
    const add = { body: { name: 'acme' }, headers: KEY }
    for (let times = 0; times < 2; times++) {
      const dry = await on.call('POST', '/v1/customers?dry_run=true', secret, add)
      assert.deepEqual([dry.status, dry.headers.get('idempotency-replayed')], [200, null])
    }
    assert.equal((await on.call('POST', '/v1/customers', secret, add)).status, 200)
    assert.deepEqual(on.calls, ['customerAdd dry', 'customerAdd dry', 'customerAdd'])
  })

  test('of a change under way is refused for now; after a refusal of the handler it may be used again', async () => {
    const { promise: held, resolve: finish } = Promise.withResolvers<void>()
    const started = new EventTarget()
    let calls = 0
    const customerAdd: AdminHandler = async () => {
      calls += 1
      started.dispatchEvent(new Event('call'))
      await held
      return { body: { calls } }
    }
    await using on = await startTestAdmin(store, { handlers: { customerAdd } })
    const { secret } = await on.add('eve', 'owner')
    const post = (name: string, key: string) =>
      on.call('POST', '/v1/customers', secret, { body: { name }, headers: { 'idempotency-key': key } })
    const began = once(started, 'call')
    const first = post('acme', 'k')
    await began
    const second = await post('acme', 'k')
    assert.deepEqual([second.status, second.headers.get('retry-after')], [409, '1'])
    assert.match(await second.text(), /idempotency-running/)
    finish()
    assert.equal((await first).status, 200)
    assert.deepEqual(await (await post('acme', 'k')).json(), { calls: 1 })
    // A refusal changes nothing, so its key is free.
    const remove = () => on.call('DELETE', '/v1/admins/nobody', secret, { headers: { 'idempotency-key': 'gone' } })
    assert.equal((await remove()).status, 404)
    await on.add('nobody', 'read-only')
    assert.equal((await remove()).status, 200)
  })

  test('of a change whose commit had no reply is not performed again, and no client repeats it by itself', async () => {
    let calls = 0
    const customerAdd: AdminHandler = async () => {
      calls += 1
      throw new CommitInDoubt('the store', new Error('connection lost'))
    }
    await using on = await startTestAdmin(store, { handlers: { customerAdd } })
    const { secret } = await on.add('ida', 'owner')
    for (const replayed of [null, 'true']) {
      const response = await on.call('POST', '/v1/customers', secret, { body: { name: 'acme' }, headers: KEY })
      const { headers } = response
      assert.deepEqual([response.status, headers.get('retry-after')], [500, null])
      assert.equal(headers.get('idempotency-replayed'), replayed)
      assert.match(await response.text(), /Look whether the change was made before you repeat it/)
    }
    assert.equal(calls, 1)
  })
})

describe('kept responses', () => {
  const request = (key: string, body = '') => ({ adminId: 'adm_1', key, content: ['POST', '/v1/x', body] })
  const reply = (text = '{}'): KeptReply => ({ status: 200, text, headers: {} })
  function setUp() {
    const clock = createManualClock()
    const idempotency = createIdempotency(clock)
    return {
      clock,
      idempotency,
      keep(key: string, text?: string) {
        assert.equal(idempotency.begin(request(key)), undefined)
        idempotency.finish(request(key), reply(text))
      },
      /** Whether the response is kept; if not, the request has begun. */
      has: (key: string) => idempotency.begin(request(key)) !== undefined,
    }
  }

  test('are kept for 24 hours', () => {
    const { clock, keep, has } = setUp()
    keep('a')
    clock.advance(24 * 3_600_000)
    assert.equal(has('a'), true)
    clock.advance(1)
    assert.equal(has('a'), false)
  })

  test('are at most 10,000: the oldest go first, one under way stays', () => {
    const { idempotency, keep, has } = setUp()
    assert.equal(idempotency.begin(request('running')), undefined)
    for (let at = 0; at < 10_001; at++) keep(`k${at}`)
    assert.throws(() => has('running'), /a request with this key is running/)
    assert.equal(has('k0'), false)
    assert.equal(has('k10000'), true)
  })

  test('are at most 16 MiB: the oldest go first', () => {
    const { keep, has } = setUp()
    const large = 'x'.repeat(1024 * 1024)
    for (let at = 0; at < 17; at++) keep(`k${at}`, large)
    assert.equal(has('k16'), true)
    assert.equal(has('k0'), false)
    assert.equal(has('k3'), true)
  })
})
