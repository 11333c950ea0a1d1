import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
import { until } from '../../process/test-wait.ts'
import type { RestListener } from '../response-rest.ts'
import { ok, openTestPool, startResponseServer, textOf } from './test-pool.ts'

/** Waits until a number stays the same for a while. */
async function untilStill(what: string, read: () => number): Promise<void> {
  let last = read()
  let same = 0
  await until(what, () => {
    const now = read()
    same = now === last ? same + 1 : 0
    last = now
    return same >= 10
  })
}

type Collected = { chunks: Buffer[]; bytes: number; end: string; listener: RestListener }
function collect(): Collected {
  const collected: Collected = {
    chunks: [],
    bytes: 0,
    end: '',
    listener: {
      onData(chunk) {
        collected.chunks.push(chunk)
        collected.bytes += chunk.length
      },
      onEnd: () => void (collected.end = 'end'),
      onFail: (cause = 'fail') => void (collected.end = cause),
    },
  }
  return collected
}

test('a large body streams: nothing is read before start, nor while paused', async () => {
  const BYTES = 20_000_000
  const big = Buffer.alloc(BYTES)
  for (let at = 0; at < BYTES; at += 4) big.writeUInt32LE(at, at)
  await using server = await startResponseServer((socket, { number }) => {
    if (number > 1) return void socket.write(ok('next'))
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${BYTES}\r\n\r\n`)
    for (let at = 0; at < BYTES; at += 100_000) socket.write(big.subarray(at, at + 100_000))
  })
  using on = openTestPool(server.port, { connectionsMax: 1 })
  const outcome = await on.call()
  assert.ok(outcome.kind === 'reply' && outcome.rest !== undefined)
  const sender = [...server.sockets][0] as Socket
  await untilStill('the server is held up', () => sender.writableLength)
  const heldBack = sender.writableLength
  assert.ok(heldBack > BYTES / 2, `${heldBack} bytes left at the server`)
  const collected = collect()
  let pauses = 0
  const { rest } = outcome
  rest.start({
    ...collected.listener,
    onData(chunk) {
      collected.listener.onData(chunk)
      if (collected.bytes > BYTES / 4 && pauses === 0) {
        pauses += 1
        rest.pause()
      }
    },
  })
  await until('it is paused', () => pauses === 1)
  const atPause = collected.bytes
  await untilStill('the server is held up again', () => sender.writableLength)
  assert.ok(sender.writableLength > BYTES / 4 && sender.writableLength < heldBack)
  assert.equal(collected.bytes, atPause)
  rest.resume()
  await until('the body has ended', () => collected.end !== '')
  assert.equal(collected.end, 'end')
  assert.ok(Buffer.concat([outcome.body, ...collected.chunks]).equals(big))
  assert.equal(textOf(await on.call()), 'next', 'the connection is used again')
  assert.equal(server.connections(), 1)
})

test('a chunked body is buffered up to the limit, then streams', async () => {
  const piece = 'x'.repeat(1000)
  await using server = await startResponseServer((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    for (let at = 0; at < 100; at++) socket.write(`3e8\r\n${piece}\r\n`)
    socket.write('0\r\n\r\n')
  })
  using on = openTestPool(server.port, { bufferedBytesMax: 10_000 })
  const outcome = await on.call()
  assert.ok(outcome.kind === 'reply' && outcome.rest !== undefined)
  assert.ok(outcome.body.length > 10_000 && outcome.body.length <= 11_000)
  const collected = collect()
  outcome.rest.start(collected.listener)
  await until('the body has ended', () => collected.end !== '')
  assert.deepEqual([outcome.body.length + collected.bytes, collected.end], [100_000, 'end'])
})

test('a stalled stream fails after stallMs, a paused one does not; an aborted one closes its connection', async () => {
  const clock = createManualClock()
  await using server = await startResponseServer((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n${'x'.repeat(100_000)}`)
  })
  using on = openTestPool(server.port, { stallMs: 10_000 }, clock)
  const outcome = await on.call()
  assert.ok(outcome.kind === 'reply' && outcome.rest !== undefined)
  clock.advance(100_000)
  const collected = collect()
  outcome.rest.start(collected.listener)
  await until('the first bytes came', () => collected.bytes + outcome.body.length === 100_000)
  clock.advance(9_900)
  assert.equal(collected.end, '')
  clock.advance(100)
  assert.equal(collected.end, 'deadline')

  const second = await on.call()
  assert.ok(second.kind === 'reply' && second.rest !== undefined)
  second.rest.abort()
  await until('the connection is closed', () => server.sockets.size === 0)
  assert.equal(on.pool.inFlight, 0)
})

test('a stream that trickles fails too: so many bytes must come in stallMs', async () => {
  const clock = createManualClock()
  await using server = await startResponseServer((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n${'x'.repeat(100_000)}`)
  })
  using on = openTestPool(server.port, { stallMs: 10_000 }, clock)
  const outcome = await on.call()
  assert.ok(outcome.kind === 'reply' && outcome.rest !== undefined)
  const collected = collect()
  const arrived = () => outcome.body.length + collected.bytes
  outcome.rest.start(collected.listener)
  const [socket] = server.sockets
  let sent = 100_000
  const send = async (bytes: number) => {
    clock.advance(6000)
    socket?.write('x'.repeat(bytes))
    sent += bytes
    await until('it has come', () => arrived() === sent)
  }
  await until('the first bytes came', () => arrived() === sent)
  for (let round = 0; round < 4; round++) await send(70_000)
  assert.equal(collected.end, '')
  await send(10)
  clock.advance(4000)
  assert.equal(collected.end, 'deadline')
})

test('calls on a stream after its end do not affect the connection, which may serve another call', async () => {
  let responseSecond = () => {}
  await using server = await startResponseServer((socket, { number }) => {
    if (number === 1) socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`)
    else responseSecond = () => void socket.write(ok('second'))
  })
  using on = openTestPool(server.port, { connectionsMax: 1 })
  const first = await on.call()
  assert.ok(first.kind === 'reply' && first.rest !== undefined)
  const collected = collect()
  first.rest.start(collected.listener)
  await until('the first is complete', () => collected.end === 'end')

  const second = on.call()
  await until('the second is sent', () => server.seen.length === 2)
  first.rest.pause()
  first.rest.resume()
  first.rest.abort()
  responseSecond()
  const outcome = await second
  assert.equal(outcome.kind, 'reply')
  assert.equal(server.connections(), 1, 'on the same connection')
})
