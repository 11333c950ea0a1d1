import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { Client, credentials } from '@grpc/grpc-js'
import { until } from '../../src/platform/process/test-wait.ts'
import { openStream, SUBSCRIBE, tokenMetadata } from '../support/gateway/grpc.ts'
import { type RawPost, rawPost } from '../support/gateway/raw-post.ts'
import { type ServedGateway, startServedGateway } from '../support/gateway/served.ts'
import { startGateway } from '../support/gateway/start.ts'
import { openWsTestClient } from '../support/gateway/ws-client.ts'
import { isFull } from '../support/process/property.ts'
import { type FakeNode, startFakeNode } from './fake-node.ts'
import { callGateway } from './gateway-rig.ts'

const IN_FLIGHT = isFull ? 10_000 : 400
/** The first call waits until the last one is in flight too, on a slow machine for longer than the default of a call. */
const CALL_DEADLINE = '[upstreams.calls]\ndeadlineMs = 120000\n'
const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":[]}'

const nodeOf = ({ rpc, ws, grpc }: FakeNode) => ({ name: 'a', rpc, ws, grpc })

/** One long-lived WebSocket and one gRPC stream. */
async function openLongLived(gateway: ServedGateway, node: FakeNode) {
  node.onGrpcCall = (call) => call.sendHeaders()
  const ws = await openWsTestClient(gateway.ws, { 'x-token': gateway.token })
  await ws.call('slotSubscribe')
  const client = new Client(gateway.grpc, credentials.createInsecure())
  const stream = openStream(client, SUBSCRIBE, tokenMetadata(gateway.token))
  await stream.headers
  return {
    ws,
    stream,
    [Symbol.dispose]() {
      ws.socket.terminate()
      client.close()
    },
  }
}

describe('F11: SIGTERM under load, at the gateway', () => {
  test(`F11: none of ${IN_FLIGHT} calls in flight fails, streams end with a code to reconnect, exit 0`, async (t) => {
    await using node = await startFakeNode()
    // Held until the signal is sent: all of them are in flight at that moment.
    const release = Promise.withResolvers<void>()
    node.hold = release.promise
    await using gateway = await startServedGateway([nodeOf(node)], {
      config: `[upstreams.connections]\nrpcPerNodeMax = 2000\nrpcWaitingMax = 20000\n${CALL_DEADLINE}`,
      env: { SLUICE_DRAIN__LAME_DUCK_MS: '5000' },
    })
    using long = await openLongLived(gateway, node)
    const posts: RawPost[] = []
    const sendingMs = performance.now()
    for (let at = 0; at < IN_FLIGHT; at++) {
      posts.push(rawPost(gateway.url, gateway.token, CALL))
      if (at % 200 === 199) await until('they are connected', () => posts.every(({ socket }) => !socket.connecting))
    }
    const inFlight = async () => {
      const text = await (await fetch(`${gateway.metrics}/metrics`)).text()
      return Number(/^sluice_upstreams_calls_in_flight\S* (\d+)/m.exec(text)?.[1])
    }
    await until('all are in flight', async () => (await inFlight()) >= IN_FLIGHT, 60_000)
    t.diagnostic(`${IN_FLIGHT} calls in flight after ${((performance.now() - sendingMs) / 1000).toFixed(1)} s`)

    const fromMs = performance.now()
    gateway.running.child.kill('SIGTERM')
    await gateway.running.line(/"msg":"draining"/)
    assert.equal((await fetch(`${gateway.metrics}/readyz`)).status, 503, 'readiness ends first')
    // During the lame-duck period calls are still accepted.
    const late = rawPost(gateway.url, gateway.token, CALL)
    release.resolve()
    const responses = await Promise.allSettled([...posts, late].map(({ response }) => response))
    const failed = responses.filter((response) => response.status === 'rejected' || response.value.status !== 200)
    assert.deepEqual(failed.slice(0, 3), [], `${failed.length} of ${responses.length} failed`)
    assert.equal(await long.ws.closed, 1012)
    assert.equal((await long.stream.ended).code, 14)
    assert.equal(await gateway.running.exit(), 0)
    const tookMs = performance.now() - fromMs
    t.diagnostic(`${responses.length} responses, exited after ${(tookMs / 1000).toFixed(1)} s (figure: 30)`)
    assert.ok(tookMs <= 30_000, `${tookMs} ms`)
    const { stdout } = await gateway.sluice('usage', '--sub', 'acme-prod', '--json')
    const rows = JSON.parse(stdout) as { units: number }[]
    const units = rows.reduce((sum, row) => sum + row.units, 0)
    const forwarded = node.calls.filter(({ method }) => method === 'getBalance').length
    // Beside the calls: one WebSocket subscription and one gRPC stream.
    assert.equal(units, forwarded + 2, 'what was forwarded is in the ledger')
  })
})

test('F11: a slow client of another service takes no time of the drain: streams end and calls succeed while it is connected', async () => {
  await using node = await startFakeNode()
  const release = Promise.withResolvers<void>()
  await using gateway = await startServedGateway([nodeOf(node)], {
    config: CALL_DEADLINE,
    env: { SLUICE_INDEXER__ENABLED: 'true' },
  })
  using long = await openLongLived(gateway, node)
  node.hold = release.promise
  const post = rawPost(gateway.url, gateway.token, CALL)
  await until('the call is in flight', () => node.calls.some(({ method }) => method === 'getBalance'))
  const [host, port] = (await gateway.running.address('indexer')).split(':')
  const slow = connect({ host: host ?? '', port: Number(port) })
  let isSlowConnected = true
  slow.on('close', () => (isSlowConnected = false))
  await once(slow, 'connect')
  // The end of the head does not come; the server waits for it for some seconds.
  slow.write('POST / HTTP/1.1\r\nhost: indexer\r\n')
  gateway.running.child.kill('SIGTERM')
  await gateway.running.line(/"msg":"draining"/)
  assert.equal(await long.ws.closed, 1012)
  assert.equal((await long.stream.ended).code, 14)
  release.resolve()
  assert.equal((await post.response).status, 200)
  assert.ok(isSlowConnected, 'none of this has waited for the slow client')
  assert.equal(await gateway.running.exit(), 0)
  slow.destroy()
})

test('F11: closes WebSocket clients and gRPC streams one after another, so that they do not reconnect at once', async (t) => {
  await using node = await startFakeNode()
  node.onGrpcCall = (call) => call.sendHeaders()
  await using gateway = await startGateway([nodeOf(node)])
  const { token } = await gateway.subscribe({ overrides: { wsConnections: null, grpcStreams: null } })
  const client = new Client(gateway.grpc, credentials.createInsecure())
  const leftMs: Record<'ws' | 'grpc', number[]> = { ws: [], grpc: [] }
  for (let at = 0; at < 20; at++) {
    const ws = await openWsTestClient(gateway.ws, { 'x-token': token })
    void ws.closed.then((code) => leftMs.ws.push(code === 1012 ? performance.now() : Number.NaN))
    const stream = openStream(client, SUBSCRIBE, tokenMetadata(token))
    await stream.headers
    void stream.ended.then(({ code }) => leftMs.grpc.push(code === 14 ? performance.now() : Number.NaN))
  }
  // Half of the deadline, at most 5 s.
  const deadlineMs = isFull ? 12_000 : 3000
  const spreadMs = Math.min(5000, deadlineMs / 2)
  await gateway.bundle.drain(deadlineMs)
  for (const [kind, times] of Object.entries(leftMs)) {
    await until('all have left', () => times.length === 20)
    const tookMs = Math.max(...times) - Math.min(...times)
    t.diagnostic(`${kind}: 20 clients left over ${tookMs.toFixed(0)} ms of ${spreadMs}`)
    assert.ok(tookMs >= spreadMs * 0.8, `${kind}: ${tookMs} ms`)
  }
  client.close()
})

test('F18: keeps the old config on an invalid reload, names the mistake by line and column, and closes no connection', async () => {
  await using node = await startFakeNode()
  await using gateway = await startServedGateway([nodeOf(node)])
  using long = await openLongLived(gateway, node)
  const good = readFileSync(gateway.configFile, 'utf8')
  for (const [bad, position] of [
    [`${good}\n[log]\nlevle = "info"\n`, /:\d+:1\b/],
    [`${good}\n[log]\nlevel = \n`, /:\d+:\d+/],
    [good.replace('unitsPerSecond = "unlimited"', 'unitsPerSecond = -5'), /:\d+:\d+/],
  ] as const) {
    writeFileSync(gateway.configFile, bad)
    const refused = await gateway.sluice('reload')
    assert.notEqual(refused.code, 0)
    assert.match(refused.stderr, position)
    assert.match(refused.stderr, /the present configuration stays in effect/)
    gateway.running.child.kill('SIGHUP')
    await gateway.running.line(/"level":"error".*reload/)
    assert.equal((await callGateway(gateway.url, gateway.token, { method: 'getBalance' })).status, 200)
  }
  assert.equal((await long.ws.call('rootSubscribe')).error, undefined)
  let isEnded = false
  void long.stream.ended.then(() => (isEnded = true))
  writeFileSync(gateway.configFile, good)
  assert.equal((await gateway.sluice('reload')).code, 0)
  assert.equal(isEnded, false)
  assert.equal(await gateway.running.stop(), 0)
})
