import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
import { GrpcCode } from '../../../platform/grpc/status.ts'
import { DecodedStream, type DecodedStreamDeps } from './stream.ts'

const UNAVAILABLE = { code: GrpcCode.unavailable, message: 'gone' }
const KIB = 1024

/** A stream, the chunks that its client gets, and what it reports. */
function open(options: Partial<DecodedStreamDeps> = {}) {
  const clock = createManualClock()
  const counts = { requests: 0, ends: 0, lost: 0 }
  const chunks: number[] = []
  const stream = new DecodedStream({
    pendingBytesMax: 64 * KIB,
    clock,
    onRequest: () => void (counts.requests += 1),
    onEnd: () => void (counts.ends += 1),
    onLost: (messages) => void (counts.lost += messages),
    endsOnLoss: false,
    ...options,
  })
  const on = { data: () => {} }
  stream.onData((frames) => {
    chunks.push(frames.length)
    on.data()
  })
  return { stream, clock, counts, chunks, on, add: (bytes: number) => stream.add(7, [], new Uint8Array(bytes)) }
}

test('a stream that has ended takes and gives nothing, and ends once', () => {
  for (const end of ['finish', 'cancel'] as const) {
    const { stream, counts, chunks, add } = open()
    const stop = () => (end === 'finish' ? stream.finish(UNAVAILABLE) : stream.cancel())
    stop()
    stream.finish(UNAVAILABLE)
    stream.cancel()
    add(100)
    stream.flush()
    stream.write(new Uint8Array(9))
    assert.deepEqual([counts, chunks, stream.isOver], [{ requests: 0, ends: 1, lost: 0 }, [], true], end)
    const ends: number[] = []
    stream.onEnd(({ status }) => void ends.push(status.code))
    assert.deepEqual(
      ends,
      [end === 'finish' ? GrpcCode.unavailable : GrpcCode.cancelled],
      'a listener that is added later is called',
    )
  }
})

test('what waits for a client that has cancelled is not delivered, and what comes is not counted as lost', () => {
  const { stream, counts, chunks, add } = open()
  add(100)
  stream.cancel()
  stream.flush()
  stream.finish(UNAVAILABLE)
  assert.deepEqual([chunks, counts.ends], [[], 1])

  const slow = open({ pendingBytesMax: 1 })
  slow.stream.pause()
  slow.add(100)
  slow.stream.flush()
  slow.stream.cancel()
  slow.add(100)
  assert.equal(slow.counts.lost, 0)
})

test('messages are collected up to about 64 KiB', () => {
  const { stream, chunks, add } = open()
  for (let n = 0; n < 100; n++) add(KIB)
  assert.equal(chunks.length, 1)
  stream.flush()
  assert.equal(chunks.length, 2)
  assert.ok(chunks.every((bytes) => bytes <= 66 * KIB))
})

test('within one data set too, a client that does not read gets no more than the limit', () => {
  const { stream, counts, add } = open()
  stream.pause()
  for (let n = 0; n < 1000; n++) add(KIB)
  assert.ok(counts.lost > 800, `${counts.lost} lost`)
})

test('a client that stops again before it has read all loses what comes, and the report follows what it has read', () => {
  const { stream, counts, chunks, on, add } = open({ pendingBytesMax: 128 * KIB })
  stream.pause()
  for (let n = 0; n < 200; n++) add(KIB)
  const { lost } = counts
  assert.ok(lost > 0)
  on.data = () => stream.pause()
  stream.resume()
  assert.equal(chunks.length, 1, 'one chunk at a time')
  add(KIB)
  assert.equal(counts.lost, lost + 1, 'there is room, and a loss before it that is not reported yet')
  on.data = () => {}
  stream.resume()
  assert.ok((chunks.at(-1) ?? 0) < KIB, 'the report')
  add(KIB)
  stream.flush()
  assert.equal(counts.lost, lost + 1)
  // All that waited was read: the limit counts from zero again.
  stream.pause()
  for (let n = 0; n < 100; n++) add(KIB)
  assert.equal(counts.lost, lost + 1)
})

test('a client that reads again gets all that was accepted for it, and then the end', () => {
  const { stream, counts, chunks, on, add } = open({ endsOnLoss: true, pendingBytesMax: 128 * KIB })
  const ends: [messages: number, message: string][] = []
  stream.onEnd(({ status }) => void ends.push([chunks.length, status.message ?? '']))
  on.data = () => stream.pause()
  stream.pause()
  for (let n = 0; n < 10 && !stream.isOver; n++) {
    stream.add(100 + n, [], new Uint8Array(40 * KIB))
    stream.flush()
  }
  assert.deepEqual([stream.isOver, counts.ends, counts.lost, ends], [true, 1, 1, []])
  add(KIB)
  for (let n = 0; n < 10; n++) stream.resume()
  // 100 to 103 were accepted.
  assert.equal(chunks.length, 4)
  assert.deepEqual(ends, [[4, 'messages of slot 104 lost: the client did not read; limit: decodedPendingBytes']])
  const late: number[] = []
  stream.onEnd(({ status }) => void late.push(status.code))
  assert.deepEqual([late, counts.ends], [[GrpcCode.dataLoss], 1])
})

test('a loss that is not reported yet is reported before the end', () => {
  const { stream, counts, chunks, add } = open()
  const ends: number[] = []
  stream.onEnd(() => void ends.push(chunks.length))
  stream.pause()
  for (let n = 0; n < 100; n++) add(KIB)
  assert.ok(counts.lost > 0)
  stream.finish(UNAVAILABLE)
  assert.deepEqual([chunks.length, ends], [0, []])
  stream.resume()
  assert.deepEqual([chunks.length, ends], [2, [2]])
  assert.ok((chunks.at(-1) ?? 0) < KIB, 'the report')
})

test('a client that cancels before it has read what waits gets neither that nor the end', () => {
  const { stream, counts, chunks, add } = open()
  const ends: number[] = []
  stream.onEnd(({ status }) => void ends.push(status.code))
  stream.pause()
  add(KIB)
  stream.finish(UNAVAILABLE)
  stream.cancel()
  stream.resume()
  assert.deepEqual([chunks, ends, counts.ends], [[], [], 1])
})

test('a client that reads nothing for ten seconds after the end loses what waits, and the end names it', () => {
  const { stream, clock, chunks, on } = open({ endsOnLoss: true })
  const ends: string[] = []
  stream.onEnd(({ status }) => void ends.push(status.message ?? ''))
  on.data = () => stream.pause()
  stream.pause()
  for (let slot = 100; slot < 104 && !stream.isOver; slot++) {
    stream.add(slot, [], new Uint8Array(40 * KIB))
    stream.flush()
  }
  clock.advance(9999)
  stream.resume()
  clock.advance(9999)
  assert.deepEqual([chunks.length, ends], [1, []])
  clock.advance(1)
  assert.deepEqual(ends, ['messages from slot 101 on lost: the client did not read; limit: decodedPendingBytes'])
  stream.resume()
  assert.deepEqual([chunks.length, ends.length, clock.pendingTimers()], [1, 1, 0])
})
