import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { percentile } from '../faults/gateway-rig.ts'
import { type ServedGateway, startServedGateway } from '../support/gateway/served.ts'
import { startGateway } from '../support/gateway/start.ts'
import { isFull } from '../support/process/property.ts'

const BODY_BYTES_MAX = 64 * 1024
/** Long enough to cover a full ten-second period of the event loop delay metric. */
const STORM_MS = isFull ? 25_000 : 0
const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance"}'
const STRANGER = 'slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2'

/** A call whose body has exactly this many bytes. */
function callOfSize(bytes: number): string {
  const rest = `{"jsonrpc":"2.0","id":1,"method":"getBalance","params":[""]}`
  return rest.replace('""', `"${'x'.repeat(bytes - rest.length)}"`)
}

test('T6: uses x-forwarded-for only from a trusted proxy, and then only its last hop', async () => {
  await using node = await startFakeNode()
  const late = async (trustedProxies: string[], forwarded: (at: number) => string) => {
    await using gateway = await startGateway([{ name: 'a', rpc: node.rpc }], undefined, {
      bundle: { failuresMax: 5, trustedProxies },
    })
    const slow: number[] = []
    for (let at = 0; at < 8; at++) {
      const fromMs = performance.now()
      const headers = { 'x-token': STRANGER, 'x-forwarded-for': forwarded(at), forwarded: `for=${forwarded(at)}` }
      const response = await fetch(`${gateway.url}/v1/whoami`, { headers })
      assert.equal(response.status, 401)
      // Only a delayed response closes its connection; on a busy machine any may be slow.
      if (response.headers.get('connection') !== 'close') continue
      assert.ok(performance.now() - fromMs >= 950)
      slow.push(at)
    }
    return slow
  }
  const another = (at: number) => `203.0.113.${at}`
  assert.deepEqual(await late([], another), [5, 6, 7], 'another address in each request changes nothing')
  assert.deepEqual(await late(['127.0.0.1'], another), [], 'the trusted proxy states the client address')
  // Everything left of the last hop was written by the caller.
  assert.deepEqual(await late(['127.0.0.1'], (at) => `${another(at)}, 198.51.100.7`), [5, 6, 7])
})

describe('requests over a limit', () => {
  let node: FakeNode
  let gateway: ServedGateway
  before(async () => {
    node = await startFakeNode()
    gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }])
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  const post = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
    fetch(gateway.url, {
      method: 'POST',
      body: body as string,
      headers: { 'content-type': 'application/json', 'x-token': gateway.token, ...headers },
    })
  /** Without the probes of the gateway. */
  const forwarded = () => node.calls.filter(({ method }) => method === 'getBalance').length
  const rssBytes = () =>
    Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${gateway.running.child.pid}/status`, 'utf8'))?.[1]) * 1024

  /** A connection with the head of a call; returns the response, and whether the server has closed it. */
  function open(headers: string) {
    const { port, hostname } = new URL(gateway.url)
    const socket: Socket = connect(Number(port), hostname)
    const seen = { socket, text: '', isClosed: false }
    socket.on('data', (chunk: Buffer) => (seen.text += chunk.toString('latin1')))
    socket.on('error', () => {})
    socket.on('close', () => (seen.isClosed = true))
    socket.write(
      `POST / HTTP/1.1\r\nhost: gateway\r\nx-token: ${gateway.token}\r\ncontent-type: application/json\r\n${headers}\r\n\r\n`,
    )
    return seen
  }

  test('T7: accepts 64 KiB and refuses one byte more with 413, for every transfer of the body', async () => {
    assert.equal((await post(callOfSize(BODY_BYTES_MAX))).status, 200)
    const before = forwarded()
    const large = await post(callOfSize(BODY_BYTES_MAX + 1))
    assert.equal(large.status, 413)
    assert.match(await large.text(), /"code":-32413.*"limit":"requestBytes","size":65536/)

    // With a content-length: refused before a byte of it arrives, and the connection ends.
    const reported = open('content-length: 10000000')
    // Chunked, without an end.
    const chunked = open('transfer-encoding: chunked')
    chunked.socket.write(`${(BODY_BYTES_MAX + 1).toString(16)}\r\n${'x'.repeat(BODY_BYTES_MAX + 1)}\r\n`)
    // Many small chunks.
    const crumbs = open('transfer-encoding: chunked')
    crumbs.socket.write('1\r\nx\r\n'.repeat(BODY_BYTES_MAX + 10))
    for (const seen of [reported, chunked, crumbs]) {
      await until('it is refused', () => seen.text.includes('\r\n\r\n'))
      assert.match(seen.text, /^HTTP\/1\.1 413 /)
      await until('the connection ends', () => seen.isClosed)
    }
    assert.equal(forwarded(), before)
  })

  test('T7: refuses a compressed body, or counts its decompressed size', async () => {
    const bomb = gzipSync(callOfSize(10_000_000))
    assert.ok(bomb.length < BODY_BYTES_MAX)
    const before = forwarded()
    const response = await post(bomb, { 'content-encoding': 'gzip' })
    assert.ok([413, 415].includes(response.status), `${response.status}`)
    assert.equal(forwarded(), before)
    for (const encoding of ['br', 'deflate', 'zstd', 'gzip, gzip', 'nonsense']) {
      const refused = await post(bomb, { 'content-encoding': encoding })
      assert.ok([400, 413, 415].includes(refused.status), `${encoding}: ${refused.status}`)
    }
    assert.equal(forwarded(), before)
  })

  const ENDLESS = {
    'large chunks': [`10000\r\n${'x'.repeat(0x10000)}\r\n`, 40],
    'chunks of one byte': ['1\r\nx\r\n'.repeat(10_000), 12],
  } as const
  for (const [form, [piece, count]] of Object.entries(ENDLESS))
    test(`T7: an endless body in ${form} costs less than 1 MiB`, async (t) => {
      const CONNECTIONS = 60
      await post(CALL)
      const before = rssBytes()
      const floods = Array.from({ length: CONNECTIONS }, () => open('transfer-encoding: chunked'))
      for (const { socket } of floods) for (let at = 0; at < count; at++) if (!socket.destroyed) socket.write(piece)
      // The server closes with bytes unread, so a client that only writes may get the reset before the 413.
      await until('all are refused', () => floods.every(({ text, isClosed }) => text !== '' || isClosed))
      const responses = floods.map(({ text }) => text.slice(0, 12)).filter((head) => head !== '')
      assert.deepEqual(new Set(responses), new Set(['HTTP/1.1 413']))
      const grownBytes = rssBytes() - before
      for (const { socket } of floods) socket.destroy()
      t.diagnostic(`${CONNECTIONS} floods: RSS grew by ${(grownBytes / 2 ** 20).toFixed(1)} MiB`)
      assert.ok(grownBytes <= CONNECTIONS * 2 ** 20, `${grownBytes} bytes`)
    })

  /** Each with its expected response. */
  const deep = (levels: number, inner = '1') => `${'['.repeat(levels)}${inner}${']'.repeat(levels)}`
  const call = (params: string) => `{"jsonrpc":"2.0","id":1,"method":"getBalance","params":${params}}`
  const HOSTILE: readonly [string, string, RegExp][] = [
    ['depth 33', call(deep(32)), /-32700/],
    ['as deep as a body can be', deep(30_000), /-32700/],
    ['objects as deep', `${'{"a":'.repeat(9000)}1${'}'.repeat(9000)}`, /-32700/],
    ['a method twice', '{"jsonrpc":"2.0","id":1,"method":"getBalance","method":"sendTransaction"}', /-32600/],
    ['an id twice', '{"jsonrpc":"2.0","id":1,"id":2,"method":"getBalance"}', /-32600/],
    ['5,000 members', `{${Array.from({ length: 5000 }, (_, at) => `"${at}":1`).join(',')}}`, /-32600/],
    ['a batch of a thousand', `[${Array.from({ length: 1000 }, () => CALL).join(',')}]`, /batchItems|-32413/],
    ['a batch of numbers', `[${'1,'.repeat(30_000)}1]`, /batchItems|-32413/],
    ['a very long number', call(`[${'9'.repeat(60_000)}]`), /"result"|-32700/],
    ['a very long string of escapes', call(`["${'\\u0000'.repeat(10_000)}"]`), /"result"/],
    ['quotes without end', `{"jsonrpc":"2.0","method":"${'\\"'.repeat(30_000)}`, /-32700/],
    ['nothing but spaces', ' '.repeat(65_000), /-32700/],
  ]

  test('T8: deep, duplicate and numerous members get their documented response, and unusual ids are returned unchanged', async () => {
    for (const [name, body, expected] of HOSTILE) {
      const before = forwarded()
      const text = await (await post(body)).text()
      assert.match(text, expected, name)
      if (!text.includes('"result"')) assert.equal(forwarded(), before, `${name}: nothing was forwarded`)
    }
    assert.match(await (await post(call(deep(31)))).text(), /"result"/, 'depth 32 is within the limit')
    for (const id of ['18446744073709551616', '123456789012345678901234567890', '-9007199254740993', '1.50']) {
      const text = await (await post(`{"jsonrpc":"2.0","id":${id},"method":"getBalance"}`)).text()
      assert.ok(text.trimEnd().endsWith(`"id":${id}}`), text)
    }
  })

  test('T8: none of these requests delays other clients', async (t) => {
    const waits: number[] = []
    let isRunning = true
    const others = (async () => {
      while (isRunning) {
        const fromMs = performance.now()
        await (await fetch(`${gateway.url}/health`)).text()
        waits.push(performance.now() - fromMs)
      }
    })()
    const endMs = performance.now() + STORM_MS
    for (let round = 0; round < 5 || performance.now() < endMs; round++) {
      for (const [, body] of HOSTILE) await (await post(body)).text()
    }
    isRunning = false
    await others
    const longest = percentile(waits, 1)
    const metrics = await (await fetch(`${gateway.metrics}/metrics`)).text()
    const delayed = 1000 * Number(/^sluice_process_event_loop_delay_seconds\{stat="max"\} (\S+)$/m.exec(metrics)?.[1])
    t.diagnostic(
      `${waits.length} other calls beside, median ${percentile(waits, 0.5).toFixed(1)} ms, longest ${longest.toFixed(1)} ms; event loop delayed by ${delayed.toFixed(1)} ms at most (figure: 50)`,
    )
    assert.ok(longest <= 2000, `${longest} ms`)
    // A process reports the maximum of ten seconds, which only the long storm covers.
    if (isFull) assert.ok(delayed <= 50, `${delayed} ms`)
  })
})

const OPEN_REQUESTS = [
  { what: 'the health page', path: '/health', method: 'GET', limit: 'healthPerSecond', size: 50 },
  { what: 'a preflight', path: '/', method: 'OPTIONS', limit: 'openRequestsPerSecond', size: 100 },
  { what: 'an unknown path', path: '/none', method: 'GET', limit: 'openRequestsPerSecond', size: 100 },
]

for (const { what, path, method, limit, size } of OPEN_REQUESTS)
  test(`T39: ${what} has a budget per address, and the refusal names it`, async () => {
    await using node = await startFakeNode()
    await using gateway = await startGateway([{ name: 'a', rpc: node.rpc }])
    let refused: Response | undefined
    for (let round = 0; refused === undefined && round < 40; round++) {
      const responses = await Promise.all(Array.from({ length: 100 }, () => fetch(`${gateway.url}${path}`, { method })))
      refused = responses.find(({ status }) => status === 429)
    }
    assert.ok(refused !== undefined, '4,000 requests at once were served')
    assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
    const body = (await refused.json()) as { limit: string; size: number }
    assert.deepEqual([body.limit, body.size], [limit, size])
  })
