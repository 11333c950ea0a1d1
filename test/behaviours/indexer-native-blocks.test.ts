import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { createNativeBlockStream } from '../../src/indexer/query/native-blocks.ts'
import { cityHash128 } from '../../src/platform/compression/city-hash.ts'
import { CLICKHOUSE_ADMIN, type ClickHouseServer, startClickHouse } from '../support/indexer/clickhouse.ts'
import { expandNativeBlocks } from '../support/indexer/lz4.ts'

/** ClickHouse itself writes and reads the compressed blocks that `compress=1` and `decompress=1` mean. */
describe('compressed blocks of ClickHouse', () => {
  let server: ClickHouseServer
  before(async () => {
    server = await startClickHouse()
  })
  after(() => server?.[Symbol.asyncDispose]())

  const headers = {
    'x-clickhouse-user': CLICKHOUSE_ADMIN.user,
    'x-clickhouse-key': CLICKHOUSE_ADMIN.password,
  }

  test('the checksum is that of the blocks that the server writes', async () => {
    let blocks = 0
    // This old server sends complete blocks only, so the results are large. Blocks of every size are in the test below.
    for (const column of ['number', 'cityHash64(number)', "'x'", 'number % 7']) {
      const query = encodeURIComponent(`SELECT ${column} FROM numbers(1000000) FORMAT TSV`)
      const response = await fetch(`${server.url}/?compress=1&query=${query}`, { headers })
      const body = Buffer.from(await response.arrayBuffer())
      for (let at = 0; at < body.length; blocks++) {
        const size = body.readUInt32LE(at + 17)
        const block = body.subarray(at + 16, at + 16 + size)
        assert.deepEqual(cityHash128(block), body.subarray(at, at + 16), `block of ${size} bytes`)
        at += 16 + size
      }
    }
    assert.ok(blocks >= 4, `${blocks} blocks`)
  })

  test('the server compresses errors too', async () => {
    const response = await fetch(`${server.url}/?compress=1`, { method: 'POST', headers, body: 'SELECT nosuch' })
    assert.ok(response.status >= 400)
    assert.match(expandNativeBlocks(Buffer.from(await response.arrayBuffer())).toString(), /^Code: 47, .*nosuch/)
  })

  test('the server reads blocks of every size that we write', async () => {
    for (const length of [0, 1, 7, 8, 15, 16, 17, 31, 127, 128, 129, 1000, 70_000, 200_000]) {
      const text = Array.from({ length }, (_, at) => 'abcdefghij'[(at * at) % 10]).join('')
      const statement = Buffer.from(`SELECT length('${text}')`)
      const body = await buffer(Readable.from([statement]).pipe(createNativeBlockStream()))
      const response = await fetch(`${server.url}/?decompress=1&max_query_size=1000000`, {
        method: 'POST',
        headers,
        body,
      })
      assert.equal(await response.text(), `${length}\n`)
    }
  })
})
