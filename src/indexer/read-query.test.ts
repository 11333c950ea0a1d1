import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { openServer } from '../../test/support/indexer/sql-endpoint.ts'
import { cityHash128 } from '../platform/compression/city-hash.ts'
import { toNativeBlock } from './query/native-blocks.ts'

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
    const before: number = on.charges.size
    for (let n = 0; n < free; n++) await refuse(body, headers, path)
    assert.equal(on.charges.size, before)
    await refuse(body, headers, path)
    assert.equal(on.charges.size, before + 1)
  }
  assert.equal(on.jobs.length, 0)
})

test('an INSERT with rows in any form is refused as a statement that writes, and not charged', async () => {
  await using on = await openServer()
  const insert = 'INSERT INTO blocks FORMAT'
  const inUrl = `/?query=${encodeURIComponent(`${insert} Native`)}`
  for (const [path, body, headers] of [
    ['/', Buffer.from(`/* a */ ${insert} RowBinary\n\0\x01`), {}],
    ['/', `${insert} TabSeparated\nit's`, {}],
    ['/', `${insert} VALUES ${'(1),'.repeat(30_000)}`, {}],
    ['/', gzipSync(`${insert} Native\n\0`), { 'content-encoding': 'gzip' }],
    [inUrl, Buffer.alloc(40_000), {}],
    [inUrl, 'not compressed', { 'content-encoding': 'lz4' }],
    [inUrl, Buffer.alloc(300_000), {}],
  ] as const) {
    const response = await on.post(path, body, headers)
    assert.match(await response.text(), /^Code: 164\./)
    assert.equal(response.status, 400)
  }
  assert.deepEqual([on.jobs.length, on.charges.size], [0, 0])
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
