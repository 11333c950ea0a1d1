import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { createManualClock } from '../../src/core/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFaultProxy } from './fault-proxy.ts'
import type { Toxic } from './toxics.ts'

/** An echo server behind a proxy with a manual clock, and a client that records what it receives. */
async function setUp(...toxics: Toxic[]) {
  const clock = createManualClock()
  const stack = new AsyncDisposableStack()
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  stack.defer(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const target = { host: '127.0.0.1', port: (server.address() as { port: number }).port }
  const proxy = stack.use(await startFaultProxy({ target }, { clock }))
  for (const toxic of toxics) proxy.add(toxic)

  async function openClient() {
    const socket = connect({ host: proxy.host, port: proxy.port, allowHalfOpen: true })
    const client = { socket, text: '', pieces: 0, ended: false, closed: false, error: '' }
    socket.on('data', (chunk: Buffer) => {
      client.text += chunk.toString('latin1')
      client.pieces += 1
    })
    socket.on('end', () => void (client.ended = true))
    socket.on('close', () => void (client.closed = true))
    socket.on('error', (error: NodeJS.ErrnoException) => void (client.error = error.code ?? ''))
    stack.defer(() => void socket.destroy())
    await once(socket, 'connect')
    return client
  }
  /** Advances the clock until the condition holds; returns the elapsed time of that clock. */
  async function advanceUntil(what: string, holds: () => boolean): Promise<number> {
    const fromMs = clock.monotonicMs()
    await until(what, () => {
      if (holds()) return true
      clock.advance(10)
      return false
    })
    return clock.monotonicMs() - fromMs
  }
  /** Waits until the sockets have delivered their data, without advancing the clock. */
  const arrived = (holds: () => boolean) => until('the bytes are in the proxy', holds)
  return { clock, proxy, openClient, advanceUntil, arrived, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

test('without toxics, bytes and the end of the stream pass in both directions', async () => {
  await using on = await setUp()
  const client = await on.openClient()
  client.socket.end('hello')
  await until('the echo is complete', () => client.ended)
  assert.equal(client.text, 'hello')
  await until('the connection is gone', () => on.proxy.openConnections === 0)
  assert.deepEqual(on.proxy.bytes, { upstream: 5, downstream: 5 })
})

test('latency: delays bytes by latencyMs ± jitterMs and keeps their order', async () => {
  await using on = await setUp({ type: 'latency', stream: 'upstream', latencyMs: 100, jitterMs: 20 })
  const client = await on.openClient()
  client.socket.write('abc')
  await on.arrived(() => on.clock.pendingTimers() > 0)
  on.clock.advance(79)
  assert.equal(on.proxy.bytes.upstream, 0)
  on.clock.advance(41)
  assert.equal(on.proxy.bytes.upstream, 3)
  await until('the echo is here', () => client.text === 'abc')
})

test('bandwidth: passes at most bytesPerSecond, for any chunk size', async () => {
  await using on = await setUp({ type: 'bandwidth', bytesPerSecond: 10_000 })
  const client = await on.openClient()
  client.socket.write(Buffer.alloc(20_000, 0x61))
  await on.arrived(() => on.proxy.bytes.upstream === 20_000 && on.clock.pendingTimers() > 0)
  const tookMs = await on.advanceUntil('all is here', () => client.text.length === 20_000)
  assert.ok(tookMs >= 1900, `${tookMs} ms`)
  assert.ok(client.pieces > 20)
})

test('slow_close: passes bytes at once and delays the end', async () => {
  await using on = await setUp({ type: 'slow_close', delayMs: 500 })
  const client = await on.openClient()
  client.socket.end('x')
  await until('the echo is here', () => client.text === 'x')
  await on.arrived(() => on.clock.pendingTimers() > 0)
  on.clock.advance(499)
  assert.equal(client.ended, false)
  on.clock.advance(1)
  await until('the end is here', () => client.ended)
})

test('timeout: passes nothing and closes after timeoutMs; with 0 it never closes', async () => {
  await using on = await setUp({ type: 'timeout', timeoutMs: 200 })
  const client = await on.openClient()
  client.socket.write('x')
  await on.arrived(() => on.proxy.bytes.upstream === 1)
  on.clock.advance(199)
  assert.deepEqual([client.text, client.closed], ['', false])
  on.clock.advance(1)
  await until('it is closed', () => client.closed || client.ended)

  await using still = await setUp({ type: 'timeout', timeoutMs: 0 })
  const held = await still.openClient()
  held.socket.write('x')
  await still.arrived(() => still.proxy.bytes.upstream === 1)
  still.clock.advance(1_000_000)
  assert.deepEqual([held.text, held.closed], ['', false])
  still.proxy.clear()
  held.socket.write('y')
  // The echo of x may arrive after the toxic was removed, and passes then.
  await until('it flows again', () => held.text.endsWith('y'))
})

test('reset_peer: both sides see a reset', async () => {
  await using on = await setUp({ type: 'reset_peer', timeoutMs: 50 })
  const client = await on.openClient()
  client.socket.write('x')
  await until('the echo is here', () => client.text === 'x')
  on.clock.advance(50)
  await until('it is reset', () => client.closed)
  assert.equal(client.error, 'ECONNRESET')
})

test('slicer: passes the same bytes in small chunks', async () => {
  await using on = await setUp({ type: 'slicer', averageSize: 10, sizeVariation: 5, delayMs: 1 })
  const client = await on.openClient()
  const text = Array.from({ length: 100 }, (_, at) => String.fromCharCode(97 + (at % 26))).join('')
  client.socket.write(text)
  await on.arrived(() => on.proxy.bytes.upstream === 100 && on.clock.pendingTimers() > 0)
  await on.advanceUntil('all is here', () => client.text.length === 100)
  assert.equal(client.text, text)
  assert.ok(on.clock.monotonicMs() >= 6)
})

test('limit_data: passes exactly the configured bytes, then closes', async () => {
  await using on = await setUp({ type: 'limit_data', stream: 'upstream', bytes: 7 })
  const client = await on.openClient()
  client.socket.write('0123456789')
  await until('it is closed', () => client.closed || client.ended)
  assert.equal(on.proxy.bytes.upstream, 7)
})

test('toxicity: affects only the configured share of connections', async () => {
  await using on = await setUp({ type: 'timeout', timeoutMs: 0, toxicity: 0.5 })
  const clients = await Promise.all(Array.from({ length: 40 }, () => on.openClient()))
  for (const { socket } of clients) socket.write('x')
  await until('all have sent their byte', () => on.proxy.bytes.upstream === 40)
  await until('some have their echo', () => clients.filter(({ text }) => text === 'x').length > 8)
  assert.ok(clients.filter(({ text }) => text === '').length > 8)
})

test('toxics can be added to and removed from an open connection; held bytes pass in order', async () => {
  await using on = await setUp()
  const client = await on.openClient()
  client.socket.write('a')
  await until('the echo is here', () => client.text === 'a')
  const first = on.proxy.add({ type: 'latency', latencyMs: 1000 })
  const second = on.proxy.add({ type: 'slow_close', delayMs: 1000 })
  client.socket.end('b')
  await on.arrived(() => on.clock.pendingTimers() > 0 && on.proxy.bytes.upstream === 2)
  assert.equal(client.text, 'a')
  first.remove()
  await until('the rest is here', () => client.text === 'ab')
  second.remove()
  await until('the end is here', () => client.ended)
})

test('disable refuses and closes connections; enable listens on the same port again', async () => {
  await using on = await setUp()
  const client = await on.openClient()
  await on.proxy.disable()
  await until('the open connection is closed', () => client.closed || client.ended)
  await assert.rejects(on.openClient(), { code: 'ECONNREFUSED' })
  await on.proxy.enable()
  const again = await on.openClient()
  again.socket.write('x')
  await until('the echo is here', () => again.text === 'x')
  on.proxy.resetConnections()
  await until('it is reset', () => again.error === 'ECONNRESET')
})

test('a client that does not read pauses the source, and memory stays bounded', async () => {
  await using on = await setUp({ type: 'latency', stream: 'upstream', latencyMs: 1000 })
  const client = await on.openClient()
  client.socket.write(Buffer.alloc(32 * 1024 * 1024))
  await until('the proxy holds bytes', () => on.clock.pendingTimers() > 0)
  await until('the source is paused', () => client.socket.writableLength > 16 * 1024 * 1024)
  assert.equal(on.proxy.bytes.upstream, 0)
})
