import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { brotliCompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { FREE_REFUSALS } from '../../src/access/free-refusals.ts'
import { GZIP_BODY_BYTES_MIN } from '../../src/gateway/rpc/response-encoding.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'

const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":["ä"]}'

/** Both HTTP readers must agree, so every request is sent in the form of the fast path and in one that only node:http reads. */
const READERS = ['plain', 'node:http'] as const

describe('compression on the RPC server, both ways', () => {
  let node: FakeNode
  let gateway: Gateway
  let token: string

  before(async () => {
    node = await startFakeNode()
    gateway = await startGateway([{ name: 'fake', rpc: node.rpc }])
    token = (await gateway.subscribe({})).token
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  type Response = { status: number; head: string; body: Buffer }

  /** Raw, so that no client decompresses. */
  async function send(reader: (typeof READERS)[number], body: Buffer | string, headers = ''): Promise<Response> {
    const { port } = new URL(gateway.url)
    const socket = connect(Number(port), '127.0.0.1')
    const chunks: Buffer[] = []
    let isClosed = false
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('close', () => {
      isClosed = true
    })
    socket.on('error', () => {})
    const odd = reader === 'plain' ? '' : 'Connection: close\r\n'
    socket.write(
      `POST / HTTP/1.1\r\nHost: x\r\n${odd}Content-Type: application/json\r\nx-token: ${token}\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`,
    )
    socket.write(body)
    socket.end()
    await until('the response is complete', () => isClosed, 20_000)
    const whole = Buffer.concat(chunks)
    const end = whole.indexOf('\r\n\r\n')
    const head = whole.toString('latin1', 0, end)
    const rest = whole.subarray(end + 4)
    return {
      status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]),
      head: head.toLowerCase(),
      body: /transfer-encoding: chunked/i.test(head) ? unchunk(rest) : rest,
    }
  }

  for (const reader of READERS) {
    it(`accepts compressed requests (${reader})`, async () => {
      node.respond = () => ({ result: '"ok"' })
      const response = await send(reader, gzipSync(CALL), 'Content-Encoding: gzip\r\n')
      assert.equal(response.status, 200)
      assert.equal(JSON.parse(node.calls.at(-1)?.body ?? '').params[0], 'ä')
      assert.equal((await send(reader, CALL, 'Content-Encoding: identity\r\n')).status, 200)
      const calls = node.calls.length
      const broken = await send(reader, gzipSync(CALL).subarray(0, -12), 'Content-Encoding: gzip\r\n')
      assert.match(broken.body.toString(), /-32700/)
      for (const [encoding, body] of [
        ['br', brotliCompressSync(CALL)],
        ['deflate', CALL],
        ['gzip, gzip', gzipSync(gzipSync(CALL))],
      ] as const) {
        const refused = await send(reader, body, `Content-Encoding: ${encoding}\r\n`)
        assert.equal(refused.status, 415, encoding)
        assert.match(refused.head, /accept-encoding: gzip/)
      }
      assert.equal(node.calls.length, calls, 'nothing refused was forwarded')
    })

    it(`limits the decompressed size of a request (${reader})`, async () => {
      const calls = node.calls.length
      const before = process.memoryUsage().rss
      const bomb = gzipSync(Buffer.alloc(60_000_000, ' '))
      assert(bomb.length < 65_536, 'the bomb itself is within the limit')
      for (let thrown = 0; thrown < 20; thrown++) {
        const refused = await send(reader, bomb, 'Content-Encoding: gzip\r\n')
        assert.equal(refused.status, 413)
        assert.match(refused.body.toString(), /"limit":"requestBytes"/)
      }
      assert(process.memoryUsage().rss - before < 100_000_000)
      assert.equal(node.calls.length, calls)
    })

    it(`compresses large responses for clients that accept it (${reader})`, async () => {
      const large = JSON.stringify({ value: 'abc'.repeat(GZIP_BODY_BYTES_MIN) })
      node.respond = () => ({ result: large })
      const plain = await send(reader, CALL)
      assert.match(plain.head, /vary: accept-encoding/)
      assert(!plain.head.includes('content-encoding'))
      for (const criteria of ['gzip', 'br,gzip,deflate', 'gzip;q=0.5, *;q=0', '*']) {
        const packed = await send(reader, CALL, `Accept-Encoding: ${criteria}\r\n`)
        assert.match(packed.head, /content-encoding: gzip/, criteria)
        assert.match(packed.head, /vary: accept-encoding/)
        assert.deepEqual(gunzipSync(packed.body), plain.body)
        assert(packed.body.length < plain.body.length / 2)
      }
      for (const accepted of ['identity', 'br', 'gzip;q=0', '*;q=0', 'gzip;q=0.000, br']) {
        const untouched = await send(reader, CALL, `Accept-Encoding: ${accepted}\r\n`)
        assert(!untouched.head.includes('content-encoding'), accepted)
        assert.deepEqual(untouched.body, plain.body)
      }
      node.respond = () => ({ result: '"small"' })
      const small = await send(reader, CALL, 'Accept-Encoding: gzip\r\n')
      assert(!small.head.includes('content-encoding') && !small.head.includes('vary'))
    })

    it(`compresses a streamed response (${reader})`, async () => {
      const text = Array.from({ length: 40_000 }, (_, at) => `{"pubkey":"key-${at}","lamports":${at}}`).join(',')
      node.respond = () => ({ result: `[${text}]` })
      const packed = await send(reader, CALL, 'Accept-Encoding: gzip\r\n')
      assert.match(packed.head, /content-encoding: gzip/)
      assert.match(packed.head, /transfer-encoding: chunked/)
      assert(!packed.head.includes('content-length'))
      assert.equal(gunzipSync(packed.body).toString(), `{"jsonrpc":"2.0","result":[${text}],"id":1}\n`)
    })
  }

  it('counts what it inflates of a compressed request with a wrong checksum', async () => {
    const { token: own } = await gateway.subscribe({ overrides: { unitsPerSecond: null } })
    const calls = node.calls.length
    const body = gzipSync(CALL + ' '.repeat(60_000))
    body[body.length - 8] = (body.at(-8) as number) ^ 1
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip', 'x-token': own }
    // Many more than are free, at once, so that a slow machine frees few in the meantime.
    const costs = await Promise.all(
      Array.from({ length: FREE_REFUSALS.burst }, async () => {
        const response = await fetch(gateway.url, { method: 'POST', body, headers })
        assert.match(await response.text(), /-32700/)
        return response.headers.get('x-ratelimit-cost')
      }),
    )
    assert.deepEqual(new Set(costs), new Set(['0', '1']))
    assert.equal(node.calls.length, calls)
  })

  it('refuses a compressed request over inflateRatio although its size is allowed, and does not forward it', async () => {
    const { token: large } = await gateway.subscribe({ overrides: { requestBytes: 4 * 2 ** 20 } })
    const calls = node.calls.length
    const body = gzipSync(CALL + ' '.repeat(2 * 2 ** 20))
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip', 'x-token': large }
    const send = () => fetch(gateway.url, { method: 'POST', body, headers })
    const response = await send()
    assert.equal(response.headers.get('x-ratelimit-cost'), '0')
    const { error } = (await response.json()) as { error: { message: string; data: { limit: string; size: number } } }
    assert.deepEqual([response.status, error.data.limit, error.data.size], [413, 'inflateRatio', 32])
    assert.match(error.message, /send it uncompressed/)
    let more = response
    for (let at = 0; at < 2 * FREE_REFUSALS.burst && more.headers.get('x-ratelimit-cost') === '0'; at++)
      more = await send()
    assert.deepEqual([more.status, more.headers.get('x-ratelimit-cost')], [413, '1'], 'too many are charged')
    assert.equal(node.calls.length, calls)
  })

  it('works with a client that decompresses transparently', async () => {
    node.respond = () => ({ result: JSON.stringify('z'.repeat(20_000)) })
    const response = await fetch(gateway.url, {
      method: 'POST',
      body: CALL,
      headers: { 'content-type': 'application/json', 'x-token': token },
    })
    assert.equal(response.headers.get('content-encoding'), 'gzip')
    assert.equal(((await response.json()) as { result: string }).result.length, 20_000)
  })
})

function unchunk(bytes: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const line = bytes.indexOf('\r\n', at)
    const size = Number.parseInt(bytes.toString('latin1', at, line), 16)
    assert(size >= 0, 'a chunk begins with its size')
    if (size === 0) return Buffer.concat(parts)
    parts.push(bytes.subarray(line + 2, line + 2 + size))
    at = line + 2 + size + 2
  }
}
