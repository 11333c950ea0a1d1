import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import type { Call } from '../access/admission.ts'
import type { Access } from '../access/call-access.ts'
import type { Caller } from '../access/callers.ts'
import type { Charged } from '../access/quota/charge.ts'
import { createManualClock } from '../core/clock.ts'
import { createSeededRandom } from '../core/random.ts'
import { cityHash128 } from '../platform/compression/city-hash.ts'
import { until } from '../platform/process/test-wait.ts'
import { silentLogger } from '../platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import type { ClickHouseProxy } from './clickhouse/proxy.ts'
import { validateRequest } from './clickhouse/request.ts'
import { startIndexerServer } from './http.ts'
import { indexerMetrics } from './metrics.ts'
import { QueryError } from './query/error.ts'
import type { QueryExecutor } from './query/executor.ts'
import { toNativeBlock } from './query/native-blocks.ts'
import type { QueryJob } from './query/request.ts'
import type { QueryResult } from './query/result.ts'

const PART = Buffer.alloc(256 * 1024, 7)
const READ_SECONDS_MAX = 60
const LOGIN = { authorization: `Basic ${Buffer.from('user:password').toString('base64')}`, 'x-token': 'token' }

/** The SQL endpoint for one customer, whose queries all have the same result of many parts. */
async function openServer({
  trustedProxies,
  plaintext,
  failure,
  proxy,
}: {
  trustedProxies?: string[]
  plaintext?: 'behind-proxy'
  /** What every query ends with. */
  failure?: QueryError
  /** In place of the embedded database. */
  proxy?: Pick<ClickHouseProxy, 'validate'>
} = {}) {
  const clock = createManualClock()
  const jobs: QueryJob[] = []
  let taken = 0
  async function* parts(): AsyncGenerator<Uint8Array> {
    for (; taken < 400; taken++) yield PART
  }
  const end = { rows: 1, bytes: 400 * PART.length, elapsedSeconds: 0 }
  const head = { format: 'RowBinary', contentType: 'application/octet-stream', coverageSlot: 1, end }
  const result: QueryResult = { ...head, parts, [Symbol.dispose]() {} }
  async function run(_: string, job: QueryJob): Promise<QueryResult> {
    if (failure !== undefined) throw failure
    jobs.push(job)
    return result
  }
  const executor = { run } as unknown as QueryExecutor
  const charges = new Set<object>()
  const caller = { ok: true, subscription: { id: 'sub' } }
  const refused = { ok: false, reason: 'unknown' }
  const access = {
    authenticateIndexer: ({ token }: { token?: string }) => (token === 'token' ? caller : refused),
    admit() {
      const charged = { ok: true }
      charges.add(charged)
      return charged
    },
    countBytes() {},
    refund: (_caller: Caller, _call: Call, charged: Charged) => void charges.delete(charged),
  }
  const server = await startIndexerServer(
    {
      listen: { host: '127.0.0.1', port: 0, plaintext },
      trustedProxies,
      limits: { secondsMax: 10, rowsMax: 1000, bytesMax: 1e9 },
      readSecondsMax: READ_SECONDS_MAX,
      displayName: 'test',
    },
    {
      access: access as unknown as Access,
      engine: proxy === undefined ? { executor } : { proxy: proxy as ClickHouseProxy },
      coverageSlot: () => 1,
      metrics: indexerMetrics(createMetricsRegistry()),
      ...{ clock, log: silentLogger, random: createSeededRandom(1) },
      onRefused() {},
      onNotAfter() {},
    },
  )
  async function get(path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    const sent = request({ host: '127.0.0.1', port: server.address.port, path, headers: { ...LOGIN, ...headers } })
    sent.on('error', () => {})
    const [response] = (await once(sent.end(), 'response')) as [IncomingMessage]
    response.on('error', () => {})
    return response
  }
  const post = (path: string, body: NonNullable<RequestInit['body']>, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${server.address.port}${path}`, { method: 'POST', body, headers: { ...LOGIN, ...headers } })
  return {
    clock,
    jobs,
    charges,
    get,
    post,
    taken: () => taken,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

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

test('bodies that cannot be read are not charged, unless there are too many of them', async () => {
  await using on = await openServer()
  const refuse = async (body: string | Buffer<ArrayBuffer>, headers: Record<string, string> = {}, path = '/') => {
    const response = await on.post(path, body, headers)
    assert.equal(response.status, 400)
    await response.body?.cancel()
  }
  const multipart = { 'content-type': 'multipart/form-data; boundary="b"' }
  // A hundred, each a little more than one because of its length.
  for (let n = 0; n < 99; n++) await refuse('select 1', multipart)
  assert.equal(on.charges.size, 0)
  await refuse('select 1', multipart)
  await refuse('select 1', multipart)
  assert.equal(on.charges.size, 2, 'beyond the rate they stay charged')
  // A long body is more work, this one counts as eleven; and a packed one may be inflated to 256 KiB, which count as seventeen.
  for (const [free, body, headers, path] of [
    [9, Buffer.alloc(160 * 1024), multipart, '/'],
    [5, 'select 1', { 'content-encoding': 'gzip' }, '/'],
    [5, 'select 1', {}, '/?decompress=1'],
  ] as const) {
    await on.clock.advanceAsync(10_000)
    const before = on.charges.size
    for (let n = 0; n < free; n++) await refuse(body, headers, path)
    assert.equal(on.charges.size, before)
    await refuse(body, headers, path)
    assert.equal(on.charges.size, before + 1)
  }
  assert.equal(on.jobs.length, 0)
})

test('the name of a content coding has no case', async () => {
  await using on = await openServer()
  for (const coding of ['gzip', 'GZIP', 'Gzip'])
    await (await on.post('/', gzipSync(coding), { 'content-encoding': coding })).body?.cancel()
  await (await on.post('/', 'plain', { 'content-encoding': 'Identity' })).body?.cancel()
  assert.deepEqual(
    on.jobs.map(({ query }) => query),
    ['gzip', 'GZIP', 'Gzip', 'plain'],
  )
})

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

test('a multipart body has the statement and its parameters, as official clients send them', async () => {
  await using on = await openServer()
  const ids = `['${'a'.repeat(200_000)}']`
  const form = new FormData()
  form.set('query', 'select {ids:Array(String)}, {other:String}')
  form.set('param_ids', ids)
  form.set('param_other', '\r\n--x\r\n ü')
  form.set('param_empty', '')
  await (await on.post('/?default_format=JSON', form)).body?.cancel()
  assert.equal(on.jobs[0]?.query, 'select {ids:Array(String)}, {other:String}')
  assert.deepEqual(on.jobs[0]?.parameters, { ids, other: '\r\n--x\r\n ü', empty: '' })
  // The statement may be in the URL, and so may other parameters.
  const part = new FormData()
  part.set('param_b', '2')
  await (await on.post('/?query=select%201&param_a=1', part)).body?.cancel()
  assert.deepEqual([on.jobs[1]?.query, on.jobs[1]?.parameters], ['select 1', { a: '1', b: '2' }])
})

test('a multipart body is refused by name for an external table, an unknown field, too many fields or a broken form', async () => {
  await using on = await openServer()
  const formOf = (fields: readonly (readonly [string, string | Blob])[]) => {
    const form = new FormData()
    for (const [name, value] of fields) form.append(name, value)
    return form
  }
  const many = Array.from({ length: 257 }, (_, at) => [`param_p${at}`, '1'] as const)
  const multipart = { 'content-type': 'multipart/form-data; boundary="b"' }
  for (const [body, headers, status, expected] of [
    [formOf([['t', new Blob(['1'])]]), {}, 501, /External tables are not supported/],
    [formOf([['user', 'x']]), {}, 400, /A multipart body has the fields query and param_NAME, not user\./],
    [formOf(many), {}, 400, /Too many fields in the body\. Maximum: 256\./],
    [formOf([['param_a', 'a'.repeat(263_000)]]), {}, 413, /Query is too large/],
    ['select 1', multipart, 400, /The multipart body is malformed/],
    ['--b\r\n\r\nselect 1\r\n--b--\r\n', multipart, 400, /The multipart body is malformed/],
    ['--b\r\nContent-Disposition: form-data; name="query"\r\n\r\nselect 1', multipart, 400, /malformed/],
    ['select 1', { 'content-type': 'multipart/form-data' }, 400, /malformed/],
  ] as const) {
    const response = await on.post('/', body, headers)
    assert.equal(response.status, status)
    assert.match(await response.text(), expected)
  }
  assert.equal(on.jobs.length, 0)
})

/** A block of ClickHouse's compression with any method byte, size and content, and the right checksum. */
function blockOf(method: number, packed: Uint8Array, bytes: number): Buffer<ArrayBuffer> {
  const head = Buffer.alloc(9)
  head[0] = method
  head.writeUInt32LE(9 + packed.length, 1)
  head.writeUInt32LE(bytes, 5)
  const block = Buffer.concat([head, packed])
  return Buffer.concat([cityHash128(block), block])
}

test('decompress=1: the body consists of compressed blocks, as the Java client and with it Metabase send it', async () => {
  await using on = await openServer()
  const statement = `select ${'1, '.repeat(3000)}2`
  const half = Buffer.from(statement.slice(0, 100))
  const rest = Buffer.from(statement.slice(100))
  const query = async (body: Buffer<ArrayBuffer>) => {
    const response = await on.post('/?decompress=1', body)
    assert.equal(response.status, 200)
    await response.body?.cancel()
    return on.jobs.at(-1)?.query
  }
  assert.equal(await query(Buffer.from(toNativeBlock(Buffer.from(statement)))), statement)
  assert.equal(await query(Buffer.concat([toNativeBlock(half), toNativeBlock(rest)])), statement)
  assert.equal(await query(blockOf(0x02, half, 100)), statement.slice(0, 100))
  assert.equal(await query(blockOf(0x90, zstdCompressSync(rest), rest.length)), statement.slice(100))
  assert.equal(on.jobs.length, 4)
  const onlyInUrl = await on.get('/?query=select%201&decompress=1')
  onlyInUrl.destroy()
  assert.equal(on.jobs.at(-1)?.query, 'select 1')
})

test('decompress=1: a body that is not of such blocks, or expands to too much, is refused', async () => {
  await using on = await openServer()
  const good = toNativeBlock(Buffer.from('select 1'))
  const wrongSum = Buffer.from(good)
  wrongSum[0] = (wrongSum[0] as number) ^ 1
  const text = Buffer.from('select 1')
  const malformed: Buffer[] = [
    text,
    wrongSum,
    good.subarray(0, -1),
    Buffer.concat([good, text]),
    blockOf(0x02, text, 9),
    blockOf(0x91, text, 8),
    blockOf(0x90, text, 8),
    // A match before the beginning, a length without an end, more and less content than the head has.
    blockOf(0x82, Uint8Array.of(0x10, 65, 2, 0), 5),
    blockOf(0x82, Uint8Array.of(0xf0, 255), 400),
    blockOf(0x82, Uint8Array.of(0x30, 65, 66, 67), 2),
    blockOf(0x82, Uint8Array.of(0x30, 65, 66, 67), 4),
    Buffer.concat(Array.from({ length: 65 }, () => toNativeBlock(Buffer.alloc(0)))),
  ]
  for (const [at, body] of malformed.entries()) {
    const response = await on.post('/?decompress=1', Buffer.from(body))
    assert.deepEqual([at, response.status], [at, 400])
    assert.match(await response.text(), /does not consist of compressed blocks/)
  }
  const bomb = toNativeBlock(Buffer.alloc(300_000, 'a'))
  assert.equal((await on.post('/?decompress=1', Buffer.from(bomb))).status, 413)
  assert.equal(on.jobs.length, 0)
})
