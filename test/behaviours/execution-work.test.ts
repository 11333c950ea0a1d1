import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { createManualClock } from '../../src/core/clock.ts'
import { executionOptions } from '../../src/execution/options.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { ethBlock, rpcCall, txnHashOf } from '../support/execution/eth-blocks.ts'
import { startTestExecution, type TestExecution } from '../support/execution/start.ts'
import { refusedHandshake } from '../support/execution/stream-reader.ts'
import { watchEventLoop } from '../support/process/event-loop-cost.ts'

/** The execution service bounds work: no request blocks the event loop, and every client has a budget. */

type Headers = Record<string, string>
type RpcItem = { result?: unknown; error?: { code: number; message: string; data?: Record<string, unknown> } }

async function post(service: TestExecution, body: unknown, headers: Headers = {}) {
  const response = await fetch(service.http, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: text === '' ? undefined : JSON.parse(text) }
}

const { rpc: RPC } = executionOptions.parse({})
const ALL_BLOCKS = { fromBlock: 'earliest', toBlock: 'latest' }
/** Other addresses than loopback come from a trusted proxy header. */
const PROXIED = { trustedProxies: ['127.0.0.1'] }
const from = (address: string): Headers => ({ 'x-forwarded-for': address })

describe('no request blocks the event loop', () => {
  test('100 eth_getLogs over all blocks, and 100 eth_getBlockReceipts, block the event loop less than 50 ms', async () => {
    await using service = await startTestExecution({ clock: systemClock })
    for (let number = 1; number <= 12; number++)
      service.source.report(ethBlock({ number, txns: 150, logsPerTxn: 5, hasNoBloom: number % 2 === 0 }))
    // Warms up, so that compilation counts less.
    await post(service, rpcCall('eth_getLogs', [ALL_BLOCKS]))
    using turns = watchEventLoop()
    const absent = { ...ALL_BLOCKS, address: `0x${'11'.repeat(20)}` }
    const searched = await post(
      service,
      Array.from({ length: 100 }, () => rpcCall('eth_getLogs', [absent])),
    )
    assert.deepEqual([searched.status, (searched.json as RpcItem[]).length], [200, 100])
    const receipts = await post(
      service,
      Array.from({ length: 100 }, (_, at) => rpcCall('eth_getBlockReceipts', [`0x${((at % 12) + 1).toString(16)}`])),
    )
    assert.equal(receipts.status, 200)
    assert(receipts.text.length <= RPC.responseBytesMax + 100 * 300, `${receipts.text.length} bytes`)
    assert.match(receipts.text, /"limit":"responseBytes"/)
    assert(turns.longestMs < 50, `${turns.longestMs} ms`)
  })

  test('a block with 100,000 logs in one transaction is decoded in slices', async () => {
    await using service = await startTestExecution({ clock: systemClock })
    service.source.report(ethBlock({ number: 1, txns: 1, logsPerTxn: 100_000, dataBytes: 0, hasNoBloom: true }))
    await post(service, rpcCall('eth_blockNumber'))
    using turns = watchEventLoop()
    const searched = await post(service, rpcCall('eth_getLogs', [{ ...ALL_BLOCKS, topics: [`0x${'11'.repeat(32)}`] }]))
    assert.deepEqual(searched.json, { jsonrpc: '2.0', result: [], id: 1 })
    const receipt = await post(service, rpcCall('eth_getTransactionReceipt', [txnHashOf(1, 0)]))
    assert.match(receipt.text, /"limit":"responseBytes","size":16777216/)
    assert(turns.longestMs < 50, `${turns.longestMs} ms`)
  })

  test('bodies of many small values, of deep lists and of large filters block the event loop less than 50 ms', async () => {
    await using service = await startTestExecution({ clock: systemClock })
    service.source.report(ethBlock({ number: 1, txns: 1, logsPerTxn: 1 }))
    await post(service, rpcCall('eth_blockNumber'))
    const word = (n: number, digits: number) => `0x${n.toString(16).padStart(digits, '0')}`
    const words = (digits: number) => Array.from({ length: 256 }, (_, n) => word(n, digits))
    const bodies = [
      `[${'1,'.repeat(65_000)}1]`,
      `[${'{"id":1},'.repeat(14_000)}1]`,
      `{"id":1,"params":[${'1,'.repeat(64_000)}1]}`,
      `${'['.repeat(65_000)}${']'.repeat(65_000)}`,
      JSON.stringify(
        rpcCall('eth_getLogs', [{ address: words(40), topics: [words(64), words(64), words(64), words(64)] }]),
      ),
    ]
    using turns = watchEventLoop()
    for (const body of bodies) assert([200, 413].includes((await post(service, body)).status))
    assert(turns.longestMs < 50, `${turns.longestMs} ms`)
    const large = await post(service, `"${'x'.repeat(RPC.requestBytesMax)}"`)
    assert.equal(large.status, 413)
    assert.deepEqual(large.json.error.data, { limit: 'requestBytes', size: RPC.requestBytesMax })
  })

  test('refuses a result that cannot fit a response before it is decoded', async () => {
    const settings = { rpc: { ...RPC, responseBytesMax: 64 * 1024 } }
    await using service = await startTestExecution({ settings })
    service.source.report(ethBlock({ number: 1, txns: 1, logsPerTxn: 0, inputBytes: 40_000 }))
    for (const call of [
      rpcCall('eth_getTransactionByHash', [txnHashOf(1, 0)]),
      rpcCall('eth_getBlockByNumber', ['0x1', true]),
    ]) {
      const { status, json } = await post(service, call)
      assert.equal(status, 200)
      assert.deepEqual((json as RpcItem).error?.data?.['limit'], 'responseBytes')
    }
    assert.equal((await post(service, rpcCall('eth_getBlockByNumber', ['0x1', false]))).json.result.number, '0x1')
  })

  test('a disconnected client stops its work', async () => {
    await using service = await startTestExecution({ clock: systemClock })
    for (let number = 1; number <= 4; number++) service.source.report(ethBlock({ number, txns: 200, logsPerTxn: 5 }))
    const batch = JSON.stringify(Array.from({ length: 100 }, () => rpcCall('eth_getLogs', [ALL_BLOCKS])))
    const { port } = new URL(service.http)
    const socket = connect(Number(port), '127.0.0.1')
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${batch.length}\r\n\r\n${batch}`)
    const open = () => service.registry.value('sluice_execution_rpc_requests')
    const calls = (outcome: 'ok' | 'error') =>
      service.registry.value('sluice_execution_rpc_calls_total', { method: 'eth_getLogs', outcome }) ?? 0
    const done = () => calls('ok') + calls('error')
    await until('the request is in progress', () => open() === 1 && done() > 0)
    // A client that only ends its side may still wait for the response, and is served.
    socket.resetAndDestroy()
    await until('its permit is released', () => open() === 0)
    const atLeave = done()
    // Another request runs after the rest of the first.
    await post(service, rpcCall('eth_blockNumber'))
    assert(done() <= atLeave + 1 && done() < 100, `${atLeave}, then ${done()} of 100 calls`)
  })
})

describe('every client has a budget', () => {
  const settings = { ...PROXIED, work: { unitsPerSecond: 10, burstUnits: 1000 } }

  test('JSON-RPC: 429 with Retry-After in seconds when it is used up; others are served; it refills with time', async () => {
    const clock = createManualClock()
    await using service = await startTestExecution({ clock, settings })
    const batch = Array.from({ length: 100 }, () => rpcCall('eth_syncing'))
    const first: number[] = []
    for (let requests = 0; requests < 10; requests++) first.push((await post(service, batch, from('192.0.2.1'))).status)
    assert.deepEqual(
      first.filter((status) => status === 200),
      first,
    )
    const refused = await post(service, rpcCall('eth_syncing'), from('192.0.2.1'))
    assert.equal(refused.status, 429)
    assert.equal(refused.headers.get('retry-after'), '1')
    const { retryAfterMs, ...data } = refused.json.error.data
    assert.deepEqual(data, { limit: 'unitsPerSecond', size: 10, cost: 1 })
    assert(retryAfterMs >= 100 && retryAfterMs <= 1000, String(retryAfterMs))
    assert.equal((await post(service, rpcCall('eth_syncing'), from('192.0.2.2'))).status, 200)
    clock.advance(1000)
    assert.equal((await post(service, rpcCall('eth_syncing'), from('192.0.2.1'))).status, 200)
    const counted = service.registry.value('sluice_execution_limits_reached_total', { limit: 'unitsPerSecond' })
    assert(counted !== undefined && counted > 10, String(counted))
  })

  test('an IPv6 /64 network is one client', async () => {
    await using service = await startTestExecution({ clock: createManualClock(), settings })
    const batch = Array.from({ length: 100 }, () => rpcCall('eth_syncing'))
    for (let host = 1; host <= 10; host++) await post(service, batch, from(`2001:db8::${host}`))
    assert.equal((await post(service, rpcCall('eth_syncing'), from('2001:db8::ffff'))).status, 429)
    assert.equal((await post(service, rpcCall('eth_syncing'), from('2001:db8:0:1::1'))).status, 200)
  })

  test('bytes and blocks are charged: the debt of a large response delays the next call', async () => {
    const clock = createManualClock()
    await using service = await startTestExecution({
      clock,
      settings: { ...settings, rpc: { ...RPC, logBlocksMax: 4 } },
    })
    for (let number = 1; number <= 6; number++) service.source.report(ethBlock({ number, txns: 20, logsPerTxn: 5 }))
    const large = await post(service, rpcCall('eth_getLogs', [{ fromBlock: '0x1', toBlock: '0x4' }]))
    const many = (await post(service, rpcCall('eth_getLogs', [ALL_BLOCKS]))).json as RpcItem
    assert.deepEqual(many.error?.data, { limit: 'logBlocks', size: 4 })
    const units = 1 + 1 + 4 + large.text.length / 4096 + 2
    let calls = 0
    while ((await post(service, rpcCall('eth_syncing'))).status === 200) calls += 1
    // Each of these costs two: the request, and its call.
    assert(Math.abs(calls * 2 + units - 1000) < 10, `${calls} calls and ${units} units`)
  })

  test('reads, page and metrics: 429 with the limit; /health is always served', async () => {
    const clock = createManualClock()
    await using service = await startTestExecution({ clock, settings })
    service.source.beat()
    const get = (path: string, headers: Headers = {}) => fetch(`${service.http}${path}`, { headers })
    const scrapes: number[] = []
    for (let count = 0; count < 41; count++) scrapes.push((await get('/metrics')).status)
    assert.deepEqual([scrapes.indexOf(429), scrapes.at(-1)], [40, 429])
    clock.advance(100)
    assert.equal((await get('/v1/tps')).status, 200)
    for (const path of ['/v1/tps', '/v1/status', '/v1/blocks', '/v1/blocks/lifecycle', '/v1/blocks/1/lifecycle', '/']) {
      const refused = await get(path)
      assert.equal(refused.status, 429, path)
      assert.equal(refused.headers.get('retry-after'), '1', path)
      assert.deepEqual(await refused.json(), {
        error: 'limit reached: 10 work units per second',
        limit: 'unitsPerSecond',
        size: 10,
        cost: 1,
        retryAfterMs: 100,
      })
    }
    assert.equal((await get('/health')).status, 200)
    assert.equal((await get('/v1/tps', from('192.0.2.9'))).status, 200)
  })

  test('/health has a rate of its own for each address, and the refusal names it', async () => {
    const clock = createManualClock()
    await using service = await startTestExecution({ clock, settings })
    service.source.beat()
    const get = (headers: Headers = {}) => fetch(`${service.http}/health`, { headers })
    for (let count = 0; count < 2000; count++) assert.equal((await get()).status, 200)
    const refused = await get()
    assert.equal(refused.status, 429)
    const { limit, size } = (await refused.json()) as Record<string, unknown>
    assert.deepEqual([limit, size], ['healthPerSecond', 50])
    assert.equal((await get(from('192.0.2.9'))).status, 200)
    clock.advance(1000)
    service.source.beat()
    assert.equal((await get()).status, 200)
  })

  test('requests of another content type and handshakes that are refused use up the budget of their address', async () => {
    const refusals: [string, number, (service: TestExecution) => Promise<number>][] = [
      ['a media type', 415, async ({ http }) => (await fetch(http, { method: 'POST', body: 'x' })).status],
      ['an unknown path', 404, async ({ ws }) => (await refusedHandshake(`${ws}/v1/none`)).status],
    ]
    for (const [what, status, ask] of refusals) {
      const work = { unitsPerSecond: 10, burstUnits: 20 }
      await using service = await startTestExecution({ clock: createManualClock(), settings: { ...settings, work } })
      const statuses: number[] = []
      for (let at = 0; at < 22; at++) statuses.push(await ask(service))
      assert.deepEqual(statuses, [...Array(20).fill(status), 429, 429], what)
    }
  })

  test('normal use is far below the default budget: polling, full blocks, a scrape every 5 s', async () => {
    const clock = createManualClock()
    await using service = await startTestExecution({ clock })
    for (let second = 1; second <= 60; second++) {
      service.source.report(ethBlock({ number: second, txns: 20, logsPerTxn: 2 }))
      const bodies = ['eth_blockNumber', 'eth_chainId'].map((method) => rpcCall(method))
      const whole = [rpcCall('eth_getBlockByNumber', ['latest', true]), rpcCall('eth_getBlockReceipts', ['latest'])]
      const logs = rpcCall('eth_getLogs', [ALL_BLOCKS])
      for (const body of [...bodies, ...whole, logs]) assert.equal((await post(service, body)).status, 200)
      if (second % 5 === 0) assert.equal((await fetch(`${service.http}/metrics`)).status, 200)
      clock.advance(1000)
      service.source.beat()
    }
  })
})

describe('concurrent requests', () => {
  test('are limited per client; one more is refused, another client is served', async () => {
    const settings = { ...PROXIED, rpc: { ...RPC, requestsPerClientMax: 3 } }
    await using service = await startTestExecution({ settings })
    const { port } = new URL(service.http)
    const sockets = Array.from({ length: 3 }, () => {
      const socket = connect(Number(port), '127.0.0.1')
      socket.write('POST / HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 192.0.2.1\r\ncontent-length: 100\r\n\r\n{')
      return socket
    })
    await until('all are open', () => service.registry.value('sluice_execution_rpc_requests') === 3)
    const refused = await post(service, rpcCall('eth_syncing'), from('192.0.2.1'))
    assert.equal(refused.status, 429)
    assert.deepEqual(refused.json.error.data, { limit: 'requestsPerClient', size: 3, retryAfterMs: 1000 })
    assert.equal((await post(service, rpcCall('eth_syncing'), from('192.0.2.2'))).status, 200)
    for (const socket of sockets) socket.destroy()
    await until('their permits are released', () => service.registry.value('sluice_execution_rpc_requests') === 0)
    assert.equal((await post(service, rpcCall('eth_syncing'), from('192.0.2.1'))).status, 200)
  })

  test('a client that does not read is disconnected, and its unread bytes are freed', async () => {
    const clock = createManualClock()
    await using service = await startTestExecution({ clock })
    for (let number = 1; number <= 4; number++) service.source.report(ethBlock({ number, txns: 200, logsPerTxn: 5 }))
    const { port } = new URL(service.http)
    const socket = connect(Number(port), '127.0.0.1')
    socket.on('error', () => {})
    socket.pause()
    const body = JSON.stringify(
      Array.from({ length: 16 }, (_, at) => rpcCall('eth_getBlockReceipts', [`0x${(at % 4) + 1}`])),
    )
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    const unread = () => service.registry.value('sluice_execution_rpc_unread_bytes') ?? 0
    await until('the response waits', () => unread() > 1_000_000)
    clock.advance(60_000)
    await until('it is freed', () => unread() === 0)
    socket.destroy()
  })
})
