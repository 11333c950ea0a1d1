import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { SharedFrames } from '../net/shared-frames.ts'
import { ServerWsConnection } from './connection.ts'
import { encodeTextFrame } from './frame.ts'
import type { WsSocket } from './socket.ts'

const MIB = 1024 * 1024
const KIB = 1024
const EVERY_BEAT = { pingBeats: 1, silentBeatsMax: 1 }

/** A connection whose client reads when the test lets it: a write is done when all of its bytes were read. */
function open(options: { readonly pendingBytesMax?: number; readonly stallMs?: number } = {}) {
  const clock = createManualClock()
  const received: Buffer[] = []
  const unread: { bytes: Buffer; done: () => void }[] = []
  const socket = new Duplex({
    writableHighWaterMark: 64 * KIB,
    read() {},
    write: (bytes: Buffer, _encoding, done) => void unread.push({ bytes, done }),
  })
  let closed: number | undefined
  const library = Object.assign(new EventEmitter(), {
    OPEN: 1,
    readyState: 1,
    extensions: '',
    attach() {},
    ping: () => void socket.write(Buffer.from('<ping>')),
    pong: (data: Buffer) => void socket.write(Buffer.from(`<pong ${data.toString()}>`)),
    terminate() {},
    closeNow(code: number) {
      closed = code
      library.readyState = 2
      socket.write(Buffer.from(`<close ${code}>`))
    },
  })
  const connection = new ServerWsConnection(
    {
      messageBytesMax: 4096,
      pendingBytesMax: 4 * MIB,
      stallMs: 5000,
      closeGraceMs: 1000,
      responseGraceMs: 10_000,
      controlPerSecondMax: 10,
      ...options,
    },
    { ws: library as unknown as WsSocket, socket, remoteAddress: '', clock, owner: { onDirty() {}, onClosed() {} } },
  )
  /** Reads what the socket was given so far, at most so many bytes; what they complete leaves. */
  async function read(bytesMax = Number.POSITIVE_INFINITY): Promise<void> {
    let left = bytesMax
    while (unread.length > 0 && left > 0) {
      const [first] = unread as [{ bytes: Buffer; done: () => void }]
      const part = first.bytes.subarray(0, left)
      left -= part.length
      received.push(part)
      first.bytes = first.bytes.subarray(part.length)
      if (first.bytes.length === 0) {
        unread.shift()
        first.done()
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return { clock, connection, library, read, received: () => Buffer.concat(received), closed: () => closed }
}

test('a client that steadily reads a large message is not closed as stalled', async () => {
  const on = open()
  const message = encodeTextFrame('a'.repeat(4 * MIB))
  on.connection.sendFrame(message)
  on.connection.flush()
  // 3 Mbit/s: the message takes 11 s.
  for (let second = 0; second < 12; second++) {
    await on.read(375_000)
    on.clock.advance(1000)
    assert.equal(on.closed(), undefined, `after ${second} s`)
  }
  assert.ok(on.received().equals(message))
  assert.equal(on.connection.pendingBytes, 0)
  assert.ok(on.connection.isClear)
  on.clock.advance(60_000)
  assert.equal(on.closed(), undefined)
})

test('a client that stops within a large message is closed stallMs later', async () => {
  const on = open()
  on.connection.sendFrame(encodeTextFrame('a'.repeat(2 * MIB)))
  on.connection.flush()
  on.clock.advance(4000)
  await on.read(500_000)
  on.clock.advance(4999)
  assert.equal(on.closed(), undefined)
  on.clock.advance(1)
  assert.equal(on.closed(), 1013)
})

test('messages behind a large one are sent after it; only they count against pendingBytesMax', async () => {
  const on = open()
  const block = new SharedFrames<Buffer>((frame) => frame)
  const slot = new SharedFrames<Buffer>((frame) => frame)
  block.join(on.connection.consumer)
  slot.join(on.connection.consumer)
  const large = encodeTextFrame('b'.repeat(5 * MIB))
  const small = encodeTextFrame('{"slot":1}')
  block.append(large)
  // In the same turn, then while the large one leaves.
  slot.append(small)
  on.connection.flush()
  slot.append(small)
  assert.equal(on.closed(), undefined)
  await on.read()
  assert.ok(on.received().equals(Buffer.concat([large, small, small])))
  assert.equal(on.closed(), undefined)
})

test('a client with more than pendingBytesMax behind the message being sent is closed with 1013', async () => {
  const on = open({ pendingBytesMax: 300 * KIB })
  const large = encodeTextFrame('a'.repeat(400 * KIB))
  on.connection.sendFrame(large)
  const behind = encodeTextFrame('b'.repeat(100 * KIB))
  on.connection.sendFrame(behind)
  on.connection.sendFrame(behind)
  assert.equal(on.closed(), undefined)
  on.connection.sendFrame(behind)
  assert.equal(on.closed(), 1013)
  await on.read()
  // The message that was being sent is complete: the client can read the close frame.
  assert.ok(on.received().equals(Buffer.concat([large, Buffer.from('<close 1013>')])))
})

test('control frames wait for the end of the message being sent', async () => {
  const on = open()
  const message = encodeTextFrame('a'.repeat(MIB))
  on.connection.sendFrame(message)
  on.connection.flush()
  on.connection.pingReceived(Buffer.from('1'))
  on.connection.pingReceived(Buffer.from('2'))
  // The heartbeat neither writes nor counts a miss meanwhile: the stall timer watches the client.
  assert.ok(on.connection.beat(EVERY_BEAT))
  assert.ok(on.connection.beat(EVERY_BEAT))
  await on.read()
  // RFC 6455 section 5.5.3: the most recent ping is enough.
  assert.ok(on.received().equals(Buffer.concat([message, Buffer.from('<pong 2>')])))
  on.connection.pingReceived(Buffer.from('3'))
  assert.ok(on.connection.beat(EVERY_BEAT))
  await on.read()
  assert.equal(on.received().subarray(message.length).toString(), '<pong 2><pong 3><ping>')
})

test('a close frame comes after the message being sent and those that fit behind it', async () => {
  const on = open()
  const message = encodeTextFrame('a'.repeat(MIB))
  on.connection.sendFrame(message)
  on.connection.close(1012, 'restart')
  await on.read()
  assert.ok(on.received().equals(Buffer.concat([message, Buffer.from('<close 1012>')])))
})

test('what is held for frames is released as they leave, and when they are dropped', async () => {
  const on = open({ pendingBytesMax: MIB })
  const released: string[] = []
  const send = (name: string, bytes: number) =>
    on.connection.sendFrame(encodeTextFrame('a'.repeat(bytes)), { [Symbol.dispose]: () => void released.push(name) })
  send('first', 300 * KIB)
  send('second', 10)
  on.connection.flush()
  send('third', 300 * KIB)
  await on.read(200 * KIB)
  assert.deepEqual(released, [])
  // A client that never catches up has read what was sent before.
  await on.read(110 * KIB)
  assert.deepEqual(new Set(released.splice(0)), new Set(['first', 'second']))
  send('fourth', 600 * KIB)
  send('fifth', 600 * KIB)
  assert.equal(on.closed(), 1013)
  assert.deepEqual(new Set(released.splice(0)), new Set(['fourth', 'fifth']))
  send('after the close', 10)
  assert.deepEqual(released.splice(0), ['after the close'])
  on.connection.closed(1006)
  assert.deepEqual(released, ['third'])
})
