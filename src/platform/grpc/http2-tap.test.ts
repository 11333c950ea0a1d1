import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import fc from 'fast-check'
import { repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { createHttp2Tap, type OpenSocket } from './http2-tap.ts'

const [DATA, HEADERS, PING, WINDOW_UPDATE] = [0, 1, 6, 8]
const END_STREAM = 1
const PADDED = 8
const WINDOWS = { streamWindowBytes: 40_000, sessionWindowBytes: 80_000 }

/** A tap on a fake socket: the test pushes bytes and records writes. */
function setUp(options = WINDOWS) {
  const written: Buffer[] = []
  let onread: Parameters<OpenSocket>[0] | undefined
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk)
      done()
    },
  })
  const tap = createHttp2Tap((given) => {
    onread = given
    return socket as unknown as Socket
  }, options)
  const passed: Buffer[] = []
  tap.connection.on('data', (bytes: Buffer) => passed.push(bytes))
  tap.connection.on('error', () => {})
  return {
    tap,
    written,
    passed: async () => {
      await new Promise((resolve) => setImmediate(resolve))
      return Buffer.concat(passed)
    },
    arrive(bytes: Buffer): void {
      if (onread === undefined) throw new Error('the socket was not opened')
      bytes.copy(onread.buffer)
      onread.callback(bytes.length)
      // The next read overwrites the buffer.
      onread.buffer.fill(0xee, 0, bytes.length)
    },
  }
}

function frame(type: number | undefined, flags: number, streamId: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type ?? 0
  head[4] = flags
  head.writeUInt32BE(streamId, 5)
  return Buffer.concat([head, payload])
}

const pad = (data: Buffer, bytes: number) => Buffer.concat([Buffer.from([bytes]), data, Buffer.alloc(bytes)])

/** WINDOW_UPDATE increments by stream. */
function updates(written: readonly Buffer[]): Map<number, number> {
  const all = Buffer.concat(written)
  const reported = new Map<number, number>()
  for (let at = 0; at < all.length; at += 9 + all.readUIntBE(at, 3)) {
    assert.equal(all[at + 3], WINDOW_UPDATE)
    const id = all.readUInt32BE(at + 5)
    reported.set(id, (reported.get(id) ?? 0) + all.readUInt32BE(at + 9))
  }
  return reported
}

test('for any split of the bytes, data of tapped streams is complete and everything else reaches the library unchanged', async (t) => {
  const piece = fc.record({
    kind: fc.constantFrom('data', 'padded', 'other-stream', 'headers', 'ping', 'large'),
    stream: fc.constantFrom(1, 3),
    bytes: fc.nat({ max: 2000 }),
    padding: fc.nat({ max: 255 }),
  })
  const property = fc.asyncProperty(
    fc.array(piece, { maxLength: 20 }),
    fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 20 }),
    async (pieces, cuts) => {
      const on = setUp({ streamWindowBytes: 10_000_000, sessionWindowBytes: 10_000_000 })
      const out = new Map<number, Buffer[]>([
        [1, []],
        [3, []],
      ])
      for (const [id, parts] of out) {
        const stream = on.tap.open(id)
        stream.onData((bytes) => parts.push(bytes))
        stream.start()
      }
      const wanted = new Map<number, Buffer[]>([
        [1, []],
        [3, []],
      ])
      const toLibrary: Buffer[] = []
      const wire: Buffer[] = []
      pieces.forEach(({ kind, stream, bytes, padding }, at) => {
        const data = Buffer.alloc(bytes, at + 1)
        const own = wanted.get(stream) as Buffer[]
        if (kind === 'data' || kind === 'padded') {
          own.push(data)
          wire.push(frame(DATA, kind === 'data' ? 0 : PADDED, stream, kind === 'data' ? data : pad(data, padding)))
          return
        }
        const other =
          kind === 'other-stream'
            ? frame(DATA, 0, 7, data)
            : kind === 'headers'
              ? frame(HEADERS, 4, stream, data)
              : kind === 'ping'
                ? frame(PING, 0, 0, Buffer.alloc(8, at))
                : frame(DATA, 0, stream, Buffer.alloc(16_385, at))
        wire.push(other)
        toLibrary.push(other)
      })
      const all = Buffer.concat(wire)
      for (let at = 0, turn = 0; at < all.length; turn++) {
        const size = cuts[turn % cuts.length] as number
        on.arrive(all.subarray(at, at + size))
        at += size
      }
      for (const id of [1, 3]) {
        assert.deepEqual(Buffer.concat(out.get(id) ?? []), Buffer.concat(wanted.get(id) ?? []))
      }
      assert.deepEqual(await on.passed(), Buffer.concat(toLibrary))
    },
  )
  await fc.assert(property, { seed: seedOf(t), numRuns: repeatsOf({ short: 100, full: 2000 }) })
})

test('data waits for the response headers, and the library gets END_STREAM', async () => {
  const on = setUp()
  const stream = on.tap.open(1)
  const got: string[] = []
  stream.onData((bytes) => got.push(bytes.toString()))
  on.arrive(Buffer.concat([frame(DATA, 0, 1, Buffer.from('a')), frame(DATA, END_STREAM, 1, Buffer.from('b'))]))
  assert.deepEqual([got, stream.waitingBytes], [[], 2])
  let isEmpty = false
  stream.whenEmpty(() => (isEmpty = true))
  assert.equal(isEmpty, false)
  stream.start()
  assert.equal(got.join(''), 'ab')
  assert.equal(isEmpty, true)
  assert.deepEqual(await on.passed(), frame(DATA, END_STREAM, 1, Buffer.alloc(0)))
})

test('sends WINDOW_UPDATE of a stream for delivered bytes, and of the connection for all received bytes', () => {
  const on = setUp()
  const [reads, stuck] = [on.tap.open(1), on.tap.open(3)]
  let got = 0
  reads.onData((bytes) => (got += bytes.length))
  reads.start()
  stuck.onData(() => assert.fail('it is paused'))
  stuck.start()
  stuck.pause()
  for (let sent = 0; sent < 30; sent++) {
    on.arrive(frame(DATA, 0, 1, Buffer.alloc(1000)))
    on.arrive(frame(DATA, PADDED, 3, pad(Buffer.alloc(900), 99)))
  }
  assert.equal(got, 30_000)
  const reported = updates(on.written)
  const near = (value: number | undefined, most: number, lag: number) =>
    assert.ok(value !== undefined && value <= most && value >= most - lag, `${value} of ${most}`)
  near(reported.get(1), 30_000, 10_000)
  near(reported.get(0), 60_000, 20_000)
  assert.equal(reported.get(3), undefined)
  stuck.onData(() => {})
  stuck.resume()
  near(updates(on.written).get(3), 30_000, 10_000)
})

test('destroys a connection that exceeds the window; a closed stream drops its data', async () => {
  const on = setUp()
  const stream = on.tap.open(1)
  for (let sent = 0; sent < 41 && !on.tap.connection.destroyed; sent++) on.arrive(frame(DATA, 0, 1, Buffer.alloc(1000)))
  assert.equal(on.tap.connection.destroyed, true)

  const other = setUp()
  const closed = other.tap.open(1)
  closed.onData(() => assert.fail('it is closed'))
  closed.start()
  closed.close()
  const late = frame(DATA, 0, 1, Buffer.from('late'))
  other.arrive(late)
  assert.deepEqual(await other.passed(), late)
  assert.equal(stream.waitingBytes > 0, true)
})

test('a stream that is closed with data unread is empty: its listener is called once', () => {
  const on = setUp()
  const stream = on.tap.open(1)
  let empties = 0
  stream.onData((_bytes, release) => release())
  stream.pause()
  stream.start()
  on.arrive(frame(DATA, END_STREAM, 1, Buffer.from('unread')))
  stream.whenEmpty(() => {
    empties += 1
    stream.close()
  })
  assert.equal(empties, 0)
  stream.close()
  assert.deepEqual([empties, stream.waitingBytes], [1, 0])
  stream.close()
  stream.resume()
  assert.equal(empties, 1)
})

test('destroys a connection with more padding than payload', () => {
  const { tap, arrive } = setUp()
  tap.open(1).onData(() => assert.fail('nothing is delivered'))
  arrive(frame(DATA, PADDED, 1, Buffer.from([3, 1, 2, 3])))
  assert.equal(tap.connection.destroyed, false)
  arrive(frame(DATA, PADDED, 1, Buffer.from([4, 1, 2, 3])))
  assert.equal(tap.connection.destroyed, true)
})
