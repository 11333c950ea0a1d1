import assert from 'node:assert/strict'
import { get as httpGet, request as httpRequest, type IncomingMessage } from 'node:http'
import { describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { systemClock } from '../../src/platform/process/clock.ts'
import { ethBlock, rpcCall } from '../support/execution/eth-blocks.ts'
import { reportTps, startTestExecution, type TestExecution } from '../support/execution/start.ts'
import { watchEventLoop } from '../support/process/event-loop-cost.ts'

/** HTTP of the execution service: compression, and paths that are WebSockets. node:http is the client, because fetch decompresses. */

type Received = { status: number; headers: IncomingMessage['headers']; body: Buffer }

async function collect(response: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }
}

function get(service: TestExecution, path: string, headers: Record<string, string> = {}, method = 'GET') {
  return new Promise<Received>((resolve, reject) => {
    httpGet(`${service.http}${path}`, { headers, method, agent: false }, (response) => {
      collect(response).then(resolve, reject)
    }).on('error', reject)
  })
}

function post(service: TestExecution, body: unknown, headers: Record<string, string> = {}) {
  return new Promise<Received>((resolve, reject) => {
    const options = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, agent: false }
    const sent = httpRequest(service.http, options, (response) => {
      collect(response).then(resolve, reject)
    })
    sent.on('error', reject)
    sent.end(JSON.stringify(body))
  })
}

const GZIP = { 'accept-encoding': 'gzip, deflate, br' }

describe('responses of 8443', () => {
  test('large REST responses and metrics are compressed for a client that accepts gzip, and vary by it', async () => {
    await using service = await startTestExecution()
    service.source.report(...Array.from({ length: 100 }, (_, at) => reportTps(at + 1)))
    for (const path of ['/v1/blocks', '/metrics']) {
      const plain = await get(service, path)
      const packed = await get(service, path, GZIP)
      assert.equal(packed.headers['content-encoding'], 'gzip', path)
      assert.match(packed.headers.vary ?? '', /accept-encoding/, path)
      assert.match(plain.headers.vary ?? '', /accept-encoding/, path)
      assert.equal(plain.headers['content-encoding'], undefined, path)
      assert.ok(packed.body.length < plain.body.length / 2, `${path}: ${packed.body.length} of ${plain.body.length}`)
      const text = gunzipSync(packed.body).toString()
      if (path === '/v1/blocks') assert.equal(text, plain.body.toString())
      else assert.match(text, /^sluice_execution_block_number /m)
      const refused = await get(service, path, { 'accept-encoding': 'gzip;q=0, br' })
      assert.equal(refused.headers['content-encoding'], undefined, path)
      const head = await get(service, path, GZIP, 'HEAD')
      assert.deepEqual([head.status, head.body.length, head.headers['content-encoding']], [200, 0, 'gzip'], path)
    }
  })

  test('a small response is sent as it is', async () => {
    await using service = await startTestExecution()
    const { headers, body } = await get(service, '/v1/tps', GZIP)
    assert.equal(headers['content-encoding'], undefined)
    assert.equal(body.toString(), '{"tps":0}')
  })

  test('JSON-RPC is compressed, whatever its size, and varies by origin too', async () => {
    await using service = await startTestExecution({ clock: systemClock })
    for (const number of [1, 2]) service.source.report(ethBlock({ number, txns: 400, logsPerTxn: 5 }))
    const calls = [
      rpcCall('eth_getBlockByNumber', ['0x1', false]),
      [rpcCall('eth_getBlockReceipts', ['0x1']), rpcCall('eth_getBlockReceipts', ['0x2'])],
    ]
    for (const call of calls) {
      const plain = await post(service, call)
      using turns = watchEventLoop()
      const packed = await post(service, call, GZIP)
      assert.ok(turns.longestMs < 50, `${turns.longestMs} ms`)
      assert.deepEqual([packed.status, packed.headers['content-encoding']], [200, 'gzip'])
      assert.equal(packed.headers.vary, 'origin, accept-encoding')
      assert.ok(packed.body.length < plain.body.length / 2)
      assert.ok(gunzipSync(packed.body).equals(plain.body))
    }
    const small = await post(service, rpcCall('eth_blockNumber'), GZIP)
    assert.equal(small.headers['content-encoding'], undefined)
    assert.deepEqual(JSON.parse(small.body.toString()), { jsonrpc: '2.0', result: '0x2', id: 1 })
  })

  test('a client that disconnects in the middle of a compressed response leaves nothing behind', async () => {
    await using service = await startTestExecution({ clock: systemClock })
    for (let number = 1; number <= 4; number++)
      service.source.report(ethBlock({ number, txns: 400, logsPerTxn: 5, dataBytes: 400 }))
    const all = [1, 2, 3, 4].map((number) => rpcCall('eth_getBlockReceipts', [`0x${number}`]))
    for (let round = 0; round < 3; round++) {
      await new Promise<void>((resolve, reject) => {
        const options = { method: 'POST', headers: { 'content-type': 'application/json', ...GZIP }, agent: false }
        const sent = httpRequest(service.http, options, (response) => {
          response.once('data', () => {
            response.destroy()
            resolve()
          })
        })
        sent.on('error', reject)
        sent.end(JSON.stringify(all))
      })
    }
    const after = await post(service, rpcCall('eth_blockNumber'))
    assert.equal(after.status, 200)
    const read = () => Promise.all(['rpc_requests', 'rpc_unread_bytes'].map((name) => gaugeOf(service, name)))
    for (let turn = 0; turn < 100 && (await read()).some((value) => value !== '0'); turn++)
      await new Promise((resolve) => setTimeout(resolve, 20))
    assert.deepEqual(await read(), ['0', '0'])
  })
})

async function gaugeOf(service: TestExecution, name: string): Promise<string | undefined> {
  const { body } = await get(service, '/metrics')
  return new RegExp(`^sluice_execution_${name} (\\S+)`, 'm').exec(body.toString())?.[1]
}

describe('a request without an upgrade to a WebSocket path', () => {
  test('is 426, names the protocol and what to do', async () => {
    await using service = await startTestExecution()
    for (const path of ['/v1/ws', '/ws', '/v1/ws?resume_from=3']) {
      const { status, headers, body } = await get(service, path)
      assert.equal(status, 426, path)
      assert.equal(headers.upgrade, 'websocket', path)
      assert.match(headers.connection ?? '', /upgrade/i, path)
      const json = JSON.parse(body.toString()) as { error: string; fix: string }
      assert.equal(json.error, 'upgrade-required')
      assert.match(json.fix, /wss?:\/\//)
      assert.match(headers['content-type'] ?? '', /application\/json/)
    }
    const head = await get(service, '/v1/ws', {}, 'HEAD')
    assert.deepEqual([head.status, head.headers.upgrade, head.body.length], [426, 'websocket', 0])
    const wrong = await get(service, '/v1/ws', {}, 'DELETE')
    assert.deepEqual([wrong.status, wrong.headers.allow], [405, 'GET, HEAD, OPTIONS'])
  })

  test('at / it is the page', async () => {
    await using service = await startTestExecution()
    assert.equal((await get(service, '/')).status, 200)
  })
})
