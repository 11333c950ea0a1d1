import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { createTestClient, FROM_MS, HOUR_MS } from '../../../test/support/admin/billing.ts'
import { startHttpServer } from '../../../test/support/machine/http-server.ts'
import type { BillingEvent } from '../../access/store/billing/tables.ts'
import { createManualClock } from '../../core/clock.ts'
import { until } from '../../platform/process/test-wait.ts'
import type { BillingSinkName } from './options.ts'
import { createStripe } from './stripe.ts'

const NAMES = { units: 'u', calls: 'c', bytes: 'b' }

const event = (id: string): BillingEvent => ({
  ...{ eventKey: `x/${id}`, sink: 'x', id, subscriptionId: 'sub_one', hour: FROM_MS, interface: 'rpc' },
  ...{ quantity: 'units', part: 1, amount: 5, subject: 'cus_one', state: 'pending', doubtSince: null, reason: null },
})

/** A billing system that responds as a test says, and its client. */
async function setUp(t: TestContext, respond: (response: ServerResponse, request: IncomingMessage) => void) {
  const server = await startHttpServer((request, response) => {
    request.resume().on('end', () => respond(response, request))
  })
  let closed: PromiseLike<void> | undefined
  const close = () => (closed ??= server[Symbol.asyncDispose]())
  t.after(close)
  const clock = createManualClock(FROM_MS + HOUR_MS)
  const { url } = server
  const open = (kind: BillingSinkName) => {
    const client = createTestClient(kind, url, 'store', clock)
    t.after(() => client[Symbol.dispose]())
    return client
  }
  return { url, clock, open, close }
}

test('a status has one of three meanings: nothing was counted, it is not known, or the events are refused', async (t) => {
  let status = 200
  const { open } = await setUp(t, (response) => void response.writeHead(status).end('why'))
  const sink = open('openmeter')
  const meaningOf = async (given: number) => {
    status = given
    const result = await sink.send([event('a'), event('b')])
    return result.kind === 'failed' ? `failed, ${result.isCounted === false ? 'not counted' : 'unknown'}` : result.kind
  }
  const meanings: Record<string, number[]> = {
    settled: [200, 201, 204],
    'failed, not counted': [301, 302, 304, 401, 402, 403, 404, 405, 429],
    'failed, unknown': [408, 409, 425, 500, 502, 503],
    rejected: [400, 406, 413, 422],
  }
  for (const [meaning, statuses] of Object.entries(meanings))
    for (const each of statuses) assert.equal(await meaningOf(each), meaning, String(each))
})

test('Retry-After is seconds or a date, an hour at most', async (t) => {
  let retryAfter = ''
  const { open } = await setUp(t, (response) => void response.writeHead(429, { 'retry-after': retryAfter }).end())
  const sink = open('stripe')
  const date = (ms: number) => new Date(FROM_MS + HOUR_MS + ms).toUTCString()
  for (const [given, expected] of [
    ['7', 7000],
    ['86400', 3_600_000],
    [date(9000), 9000],
    [date(-9000), 0],
    [date(2 * HOUR_MS), 3_600_000],
    ['soon', undefined],
  ] as const) {
    retryAfter = given
    const result = await sink.send([event('a')])
    assert.equal(result.kind === 'failed' && result.retryAfterMs, expected, given)
  }
})

test('a reason is one short line without secrets', async (t) => {
  const secret = ['slc', 'abcdefgh01234567'].join('_')
  const { open } = await setUp(t, (response) => {
    response.writeHead(400).end(`no\n such \t subject ${secret} ${'x'.repeat(300)}`)
  })
  const result = await open('openmeter').send([event('a')])
  const reason = result.kind === 'rejected' ? result.reason : ''
  assert.match(reason, /^HTTP 400: no such subject /)
  assert.ok(!reason.includes(secret))
  assert.equal(reason.length, 200)
})

test('what a billing system that cannot be reached has counted is known: nothing', async (t) => {
  const { open, close } = await setUp(t, () => {})
  const sink = open('stripe')
  await close()
  const result = await sink.send([event('a')])
  assert.deepEqual([result.kind, result.kind === 'failed' && result.isCounted], ['failed', false])
})

test('a response has 15 s and 256 KiB; beyond them it is not known whether the events were counted', async (t) => {
  let requests = 0
  const { open, clock } = await setUp(t, (response) => {
    requests += 1
    if (requests === 1) response.end('x'.repeat(256 * 1024 + 1))
  })
  const sink = open('openmeter')
  const large = await sink.send([event('a')])
  const unknown = { kind: 'failed', isCounted: undefined }
  assert.deepEqual(large, { ...unknown, reason: 'a response of more than 262144 bytes' })
  const silent = sink.send([event('a')])
  await until('the request arrives', () => requests === 2)
  clock.advance(15_000)
  assert.deepEqual(await silent, { ...unknown, reason: 'no response within 15 s' })
})

test('Stripe: a repetition is recognised by its code or its text, and one event is one request', async (t) => {
  let error: object = {}
  const { open } = await setUp(t, (response) => void response.writeHead(400).end(JSON.stringify({ error })))
  const sink = open('stripe')
  const sent = { kind: 'settled', results: [{ kind: 'sent' }] }
  error = { code: 'duplicate_meter_event' }
  assert.deepEqual(await sink.send([event('a')]), sent)
  error = { message: 'An event already exists with identifier a.' }
  assert.deepEqual(await sink.send([event('a')]), sent)
  error = { message: 'No such customer' }
  assert.equal((await sink.send([event('a')])).kind, 'rejected')
  await assert.rejects(sink.send([event('a'), event('b')]), /one event a request/)
})

test('Lago: the faults of a batch are those of its events, by place; without a place the batch is refused', async (t) => {
  let details: unknown
  const { open } = await setUp(t, (response) => {
    response.writeHead(422).end(JSON.stringify({ error_details: details }))
  })
  const sink = open('lago')
  const repeated = { transaction_id: ['value_already_exist'] }
  details = { 0: repeated, 2: { code: ['not_found'] } }
  assert.deepEqual(await sink.send([event('a'), event('b'), event('c')]), {
    kind: 'settled',
    results: [{ kind: 'sent' }, { kind: 'again' }, { kind: 'refused', reason: 'HTTP 422: {"code":["not_found"]}' }],
  })
  details = repeated
  assert.deepEqual(await sink.send([event('a')]), { kind: 'settled', results: [{ kind: 'sent' }] })
  for (details of [repeated, { events: ['too many'] }, 'text', null])
    assert.equal((await sink.send([event('a'), event('b')])).kind, 'rejected', JSON.stringify(details))
})

test('the address may have a path, and without a key there is no Authorization', async (t) => {
  const seen: [string | undefined, string | undefined][] = []
  const { url, clock } = await setUp(t, (response, { url: target, headers }) => {
    seen.push([target, headers.authorization])
    response.end('{}')
  })
  for (const path of ['/billing', '/billing/']) {
    using sink = createStripe({ url: `${url}${path}`, key: undefined }, { names: NAMES }, { clock })
    await sink.send([event('a')])
  }
  assert.deepEqual(seen, [
    ['/billing/v1/billing/meter_events', undefined],
    ['/billing/v1/billing/meter_events', undefined],
  ])
})
