import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { startHttpServer } from '../../../test/support/machine/http-server.ts'
import { createAdminToken } from '../../access/token.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { Secret } from '../../platform/config/secret-ref.ts'
import { secureRandom } from '../../platform/process/random.ts'
import { until } from '../../platform/process/test-wait.ts'
import { openRemoteApi } from './api.ts'

const TOKEN = createAdminToken(secureRandom).secret
const CUSTOMER = { id: 'cus_1', name: 'a', contact: '', state: 'active', created_at: '2026-01-01T00:00:00.000Z' }
const RESPONSE_MS = 30_000
const EXPORT = { query: { month: '2026-10', format: 'csv' } }

type Respond = (response: ServerResponse, request: IncomingMessage) => void

/** The client of an admin API that responds as a test says. */
async function setUp(t: TestContext, respond: Respond, { isDryRun = false, onWait = (_ms: number) => {} } = {}) {
  const on = { respond, requests: [] as IncomingMessage[] }
  const server = await startHttpServer((request, response) => {
    on.requests.push(request)
    on.respond(response, request)
  })
  const clock = createManualClock()
  const url = new URL(server.url)
  /** Waits between attempts are recorded and over at once. */
  const setTimer = (ms: number, run: () => void) => {
    if (ms === RESPONSE_MS) return clock.setTimer(ms, run)
    onWait(ms)
    setImmediate(() => clock.advance(0))
    return clock.setTimer(0, run)
  }
  const deps = { clock: { ...clock, setTimer }, random: createSeededRandom(1) }
  const api = openRemoteApi({ url, token: new Secret(TOKEN), isDryRun }, deps)
  t.after(async () => {
    api[Symbol.dispose]()
    await server[Symbol.asyncDispose]()
  })
  return { on, api, clock, url }
}

const json = (response: ServerResponse, body: unknown, status = 200, headers: Record<string, string> = {}) =>
  void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

test('a page of a list has at most as many items as were requested; what a server sends beyond it is not kept', async (t) => {
  let count = 1000
  const { on, api } = await setUp(t, (response) => {
    const items = Array.from({ length: count }, () => ({ ...CUSTOMER, subscriptions: 0 }))
    json(response, { items, next_cursor: on.requests.length % 2 === 1 && count === 1000 ? 'a/b&c' : null })
  })
  assert.equal((await api.list('customerList')).length, 2000)
  assert.deepEqual(
    on.requests.map(({ url }) => url),
    ['/v1/customers?limit=1000', '/v1/customers?limit=1000&cursor=a%2Fb%26c'],
  )
  count = 1001
  await assert.rejects(api.list('customerList'), /not respond as the admin API does: a page has more than 1000 items/)
})

test('a name is one segment of the path, and the token is in the header alone', async (t) => {
  const { on, api } = await setUp(t, (response) => json(response, {}, 404))
  await assert.rejects(api.call('customerShow', { params: { customer: '../admins?x=1#y' } }))
  const [request] = on.requests
  assert.equal(request?.url, '/v1/customers/..%2Fadmins%3Fx%3D1%23y')
  assert.equal(request?.headers.authorization, `Bearer ${TOKEN}`)
})

test('a dry run is named in the request and has no idempotency key; a read is the same with it', async (t) => {
  const { on, api } = await setUp(t, (response) => json(response, {}, 404), { isDryRun: true })
  await assert.rejects(api.call('customerAdd', { body: { name: 'a' } }))
  await assert.rejects(api.call('customerShow', { params: { customer: 'a' } }))
  assert.deepEqual(
    on.requests.map(({ url, headers }) => [url, headers['idempotency-key']]),
    [
      ['/v1/customers?dry_run=true', undefined],
      ['/v1/customers/a', undefined],
    ],
  )
})

test('waits at most 5 s as the server asks, also for a change that is still being made', async (t) => {
  for (const code of ['too-many-requests', 'idempotency-running']) {
    const error = { code, message: 'later' }
    const waits: number[] = []
    const { api } = await setUp(t, (response) => json(response, { error }, 429, { 'retry-after': '3600' }), {
      onWait: (ms) => void waits.push(ms),
    })
    await assert.rejects(api.call('customerShow', { params: { customer: 'a' } }), { code })
    assert.deepEqual(waits, [5000, 5000], 'between three attempts')
  }
})

test('an error without a code of the API is not shown as one of the API; a long text is cut', async (t) => {
  let error: object = {}
  const { api } = await setUp(t, (response) => json(response, { error }, 400))
  const failure = async (given: object) => {
    error = given
    return api.call('customerShow', { params: { customer: 'a' } }).then(
      () => assert.fail(),
      (fault: { code: string; message: string }) => fault,
    )
  }
  for (const given of [{ code: 'Not A Code', message: 'm' }, { code: 'not-found' }, { message: 'm' }, {}])
    assert.equal((await failure(given)).code, 'remote-response', JSON.stringify(given))
  const long = await failure({ code: 'not-found', message: 'm'.repeat(5000) })
  assert.deepEqual([long.code, long.message.length], ['not-found', 2000])
})

test('a long text is that of the API: no redirect, no other type, no error in its place', async (t) => {
  const read = async (respond: Respond) =>
    Array.fromAsync((await setUp(t, respond)).api.text('usageExport', 'text/csv', EXPORT)).then((pieces) =>
      pieces.join(''),
    )
  for (const [respond, message] of [
    [(response) => void response.writeHead(302, { location: '/x' }).end(), /redirects are not followed/],
    [(response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'), /text\/html instead/],
    [(response) => json(response, { error: { code: 'busy', message: 'four exports' } }, 503), /four exports/],
  ] as const satisfies readonly (readonly [Respond, RegExp])[])
    await assert.rejects(read(respond), message)
  const type = { 'content-type': 'text/csv; charset=utf-8' }
  assert.equal(await read((response) => void response.writeHead(200, type).end('a,b\n')), 'a,b\n')
})

test('a long text ends with an error when it is cut, or when nothing arrives for 30 s', async (t) => {
  const { on, api, clock } = await setUp(t, () => {})
  const read = () => Array.fromAsync(api.text('usageExport', 'text/csv', EXPORT))
  on.respond = (response) => {
    response.writeHead(200, { 'content-type': 'text/csv', 'content-length': '100' }).write('a,b\n')
    setImmediate(() => response.destroy())
  }
  await assert.rejects(read(), { code: 'remote-unavailable', message: /it ended in the middle/ })
  for (const [respond, pieces] of [
    [() => {}, 0],
    [(response) => void response.writeHead(200, { 'content-type': 'text/csv' }).write('a,b\n'), 1],
  ] as const satisfies readonly (readonly [Respond, number])[]) {
    on.respond = respond
    const [before, read] = [on.requests.length, [] as string[]]
    const reading = (async () => {
      for await (const piece of api.text('usageExport', 'text/csv', EXPORT)) read.push(piece)
    })()
    const rejected = assert.rejects(reading, { code: 'remote-unavailable', message: /nothing within 30 s/ })
    await until('it waits', () => on.requests.length > before && read.length === pieces && clock.pendingTimers() === 1)
    clock.advance(29_999)
    assert.equal(clock.pendingTimers(), 1)
    clock.advance(1)
    await rejected
  }
})
