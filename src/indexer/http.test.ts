import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { openServer, PART, READ_SECONDS_MAX } from '../../test/support/indexer/sql-endpoint.ts'
import { until } from '../platform/process/test-wait.ts'
import type { ClickHouseProxy } from './clickhouse/proxy.ts'
import { validateRequest } from './clickhouse/request.ts'
import { QueryError } from './query/error.ts'

test('a query that the database did not take is refunded as it was charged', async () => {
  await using busy = await openServer({ failure: new QueryError('TOO_MANY_SIMULTANEOUS_QUERIES', 'too many') })
  assert.notEqual((await busy.get('/?query=select%201')).statusCode, 200)
  assert.equal(busy.charges.size, 0)
  await using refused = await openServer({ failure: new QueryError('AUTHENTICATION_FAILED', 'refused by the server') })
  assert.equal((await refused.get('/?query=select%201')).statusCode, 401)
  assert.equal(refused.charges.size, 0)
  await using failed = await openServer({ failure: new QueryError('ILLEGAL_DIVISION', 'division by zero') })
  assert.notEqual((await failed.get('/?query=select%201')).statusCode, 200)
  assert.equal(failed.charges.size, 1, 'it was run')
})

const UNKNOWN = new QueryError('UNKNOWN_TABLE', 'no table', undefined, { isUnrun: true })
const validate: ClickHouseProxy['validate'] = (request, statement) => validateRequest(request, statement, 'chain')
const REFUSING = {
  'the embedded database': { failure: UNKNOWN },
  "the operator's ClickHouse": { proxy: { validate } },
}

for (const [name, engine] of Object.entries(REFUSING)) {
  test(`${name}: a statement that its checks refuse is not charged, unless there are too many of them`, async () => {
    await using on = await openServer(engine)
    const refuse = async () => {
      const response = await on.get('/?query=drop%20table%20blocks')
      response.resume()
      assert.ok([400, 404].includes(response.statusCode ?? 0), String(response.statusCode))
    }
    // A hundred, each a little more than one because of its length.
    for (let n = 0; n < 99; n++) await refuse()
    assert.equal(on.charges.size, 0)
    await refuse()
    await refuse()
    assert.equal(on.charges.size, 2, 'beyond the rate they stay charged')
    await on.clock.advanceAsync(1000)
    for (let n = 0; n < 9; n++) await refuse()
    assert.equal(on.charges.size, 2)
  })
}

/** Waits until the server has written all that the connection takes without a reader. */
async function untilFull(taken: () => number): Promise<void> {
  for (let before = -1; before !== taken(); ) {
    before = taken()
    for (let turns = 0; turns < 50; turns++) await new Promise(setImmediate)
  }
}

test('a client that pauses for less than readSecondsMax gets its whole result', async () => {
  await using on = await openServer()
  const response = await on.get('/?query=select%201')
  response.pause()
  await untilFull(on.taken)
  for (let seconds = 0; seconds < READ_SECONDS_MAX - 5; seconds++) await on.clock.advanceAsync(1000)
  let bytes = 0
  for await (const part of response) bytes += (part as Buffer).length
  assert.equal(bytes, 400 * PART.length)
})

test('a client that reads nothing for readSecondsMax loses its connection', async () => {
  await using on = await openServer()
  const response = await on.get('/?query=select%201')
  response.pause()
  await untilFull(on.taken)
  for (let seconds = 0; seconds < READ_SECONDS_MAX + 2; seconds++) await on.clock.advanceAsync(1000)
  response.resume()
  await until('the connection is closed', () => response.destroyed)
  assert.ok(!response.complete)
})

test('a URL takes the parameters of the largest request, and header fields only their own bytes', async () => {
  await using on = await openServer()
  const ids = 'a'.repeat(260_000)
  const accepted = await on.get(`/?query=select%201&param_ids=${ids}`)
  assert.equal(accepted.statusCode, 200)
  assert.equal(on.jobs[0]?.parameters['ids'], ids)
  accepted.destroy()
  const fields = await on.get('/?query=select%201', { 'x-other': 'b'.repeat(20_000) })
  assert.equal(fields.statusCode, 431)
  fields.resume()
  assert.equal(on.jobs.length, 1)
})

test('a URL that is too long has an error that clients of ClickHouse read', async () => {
  await using on = await openServer()
  const response = await on.get(`/?query=select%201&param_ids=${'a'.repeat(300_000)}`)
  assert.equal(response.statusCode, 413)
  assert.equal(response.headers['x-clickhouse-exception-code'], '229')
  const parts = await Array.fromAsync(response as AsyncIterable<Buffer>)
  assert.match(Buffer.concat(parts).toString(), /^Code: 229\. DB::Exception: .*294912 bytes.*\(QUERY_IS_TOO_LARGE\)\n$/)
})

test('requests without a login have a budget for each address, and a query is not part of it', async () => {
  await using on = await openServer()
  const statuses = async (path: string, count: number) => {
    const counts: Record<string, number> = {}
    for (let left = count; left > 0; left--) {
      const { statusCode = 0 } = (await on.get(path)).resume()
      counts[statusCode] = (counts[statusCode] ?? 0) + 1
    }
    return counts
  }
  assert.deepEqual(await statuses('/ping', 1000), { 200: 1000 })
  assert.deepEqual(await statuses('/nothing', 1100), { 404: 1000, 429: 100 })
  const limited = await on.get('/ping')
  const [headers, text] = [limited.headers, String((await Array.fromAsync(limited as AsyncIterable<Buffer>))[0])]
  assert.deepEqual([headers['x-clickhouse-exception-code'], headers['retry-after']], ['201', '1'])
  assert.match(text, /openRequests/)
  const query = await on.get('/?query=select%201')
  assert.equal(query.statusCode, 200)
  query.destroy()
  await on.clock.advanceAsync(1000)
  assert.deepEqual(await statuses('/ping', 201), { 200: 200, 429: 1 })
})

test('after twenty wrong logins of an address the next ones wait a second, and a right one does not', async () => {
  await using on = await openServer()
  const wrong = { 'x-token': 'wrong' }
  for (let count = 0; count < 20; count++) assert.equal((await on.get('/?query=1', wrong)).resume().statusCode, 401)
  const late = on.get('/?query=1', wrong)
  const right = await on.get('/?query=select%201')
  assert.equal(right.statusCode, 200)
  right.destroy()
  assert.equal(await Promise.race([late, Promise.resolve('waits')]), 'waits')
  await on.clock.advanceAsync(1000)
  const { statusCode, headers } = (await late).resume()
  assert.deepEqual([statusCode, headers.connection], [401, 'close'])
})

test('a login that the database refuses is not a wrong one', async () => {
  await using on = await openServer({ failure: new QueryError('AUTHENTICATION_FAILED', 'refused by the server') })
  for (let count = 0; count < 25; count++) {
    const response = (await on.get('/?query=select%201')).resume()
    assert.deepEqual([response.statusCode, response.headers.connection], [401, 'keep-alive'])
  }
})

test('behind a proxy the limits are those of the client, or none where the client is not known', async () => {
  for (const [trustedProxies, statuses] of [
    [['127.0.0.1'], [429, 200]],
    [[], [200, 200]],
  ] as const) {
    await using on = await openServer({ plaintext: 'behind-proxy', trustedProxies: [...trustedProxies] })
    const ping = async (from: string) => (await on.get('/ping', { 'x-forwarded-for': from })).resume().statusCode
    for (let count = 0; count < 2000; count++) await ping('192.0.2.1')
    assert.deepEqual([await ping('192.0.2.1'), await ping('192.0.2.2')], statuses)
    const wrong = (from: string) => on.get('/?query=1', { 'x-token': 'wrong', 'x-forwarded-for': from })
    for (let count = 0; count < 20; count++) (await wrong('192.0.2.1')).resume()
    assert.equal((await wrong('192.0.2.2')).resume().statusCode, 401)
    if (trustedProxies.length === 0) assert.equal((await wrong('192.0.2.1')).resume().statusCode, 401)
  }
})

test('very many fields in the URL are refused before they are parsed', async () => {
  await using on = await openServer()
  const response = await on.get(`/?query=1${'&a'.repeat(130_000)}`)
  assert.equal(response.statusCode, 400)
  const parts = await Array.fromAsync(response as AsyncIterable<Buffer>)
  assert.match(Buffer.concat(parts).toString(), /Too many fields in the URL\. Maximum: 256/)
  assert.equal((await on.get(`/?query=1${'&param_a=1'.repeat(255)}`)).resume().statusCode, 200)
})

test('bodies that are not complete count as held bytes of their subscription before anything is charged, and beyond its share are refused', async () => {
  const bodyBytes = 250_000
  await using on = await openServer({ heldBytesPerSubscription: 4 * bodyBytes })
  const head = ['POST / HTTP/1.1', 'host: a', 'x-token: token', `authorization: Basic ${btoa('user:password')}`]
  const unfinished = Array.from({ length: 4 }, () => {
    const socket = connect(on.address.port, '127.0.0.1')
    socket.write(`${[...head, `content-length: ${bodyBytes}`].join('\r\n')}\r\n\r\n${' '.repeat(bodyBytes - 1)}`)
    return socket
  })
  await until('they are held', () => on.heldBytes.total === 4 * (bodyBytes - 1))
  const refused = await on.post('/', 'x'.repeat(10))
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '2'])
  assert.match(await refused.text(), /heldBytesPerSubscription.*\(TOO_MANY_SIMULTANEOUS_QUERIES\)/)
  assert.equal(on.charges.size, 0)
  // Without a body there is nothing to hold.
  const served = await on.get('/?query=select%201')
  assert.equal(served.statusCode, 200)
  served.destroy()
  for (const socket of unfinished) socket.destroy()
  await until('all are released', () => on.heldBytes.total === 0)
})
