import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty, createRandom } from '../../../test/support/property.ts'
import { SendStreams, type StreamPiece } from './send-streams.ts'

const ROOM = 1170
const OPTIONS = { queuedMax: 512, activeMax: 512, stalledMax: 2, stalledMsMax: 2000, pieceBytesMax: 1100 }

function open(limits: { dataMax?: number; streamDataMax?: number; streamsMax?: number } = {}) {
  const streams = new SendStreams(OPTIONS)
  streams.begin({ dataMax: 1_000_000, streamDataMax: 1232, streamsMax: 128, ...limits })
  const outcomes: string[] = []
  const offer = (name: string, bytes: number) =>
    assert.ok(streams.offer(new Uint8Array(bytes), (outcome, reason) => outcomes.push(`${name} ${outcome}: ${reason}`)))
  /** Sends all that may be sent, as text. */
  const sendAll = (nowMs = 0): string[] => {
    const sent: string[] = []
    for (let piece = streams.next(ROOM, nowMs); piece !== undefined; piece = streams.next(ROOM, nowMs)) {
      sent.push(`${piece.stream}: ${piece.offset}+${piece.data.length}${piece.isLast ? ' end' : ''}`)
      piece.carried.acked()
    }
    assert.equal(streams.hasToSend(nowMs), false)
    return sent
  }
  return { streams, outcomes, offer, sendAll }
}

test('a stream beyond its own limit does not block the others, and continues when its limit is raised', () => {
  const { streams, outcomes, offer, sendAll } = open()
  offer('long', 2000)
  offer('a', 500)
  offer('b', 500)
  assert.deepEqual(sendAll(), ['2: 0+1100', '2: 1100+132', '6: 0+500 end', '10: 0+500 end'])
  assert.deepEqual(outcomes, ['a delivered: ', 'b delivered: '])
  assert.equal(streams.blocked, undefined, 'the connection is not blocked')
  assert.deepEqual(streams.takeStalled(), [{ stream: 2, at: 1232 }])
  assert.deepEqual(streams.takeStalled(), [], 'once for each limit')
  assert.ok(streams.raiseStreamData(2, 1232))
  assert.equal(streams.hasToSend(0), false, 'a limit that was not raised')
  assert.ok(streams.raiseStreamData(2, 4096))
  assert.deepEqual(sendAll(), ['2: 1232+768 end'])
  assert.equal(outcomes.at(-1), 'long delivered: ')
  assert.equal(streams.stalledDueMs, Number.POSITIVE_INFINITY)
})

test('a stream whose limit is not raised in time is refused with the reason; the time counts from the last stall', () => {
  const { streams, outcomes, offer, sendAll } = open()
  offer('long', 3000)
  sendAll(10_000)
  streams.raiseStreamData(2, 1300)
  assert.deepEqual(sendAll(11_000), ['2: 1232+68'])
  assert.equal(streams.stalledDueMs, 13_000)
  assert.deepEqual(streams.takeExpired(12_999), [])
  assert.deepEqual(streams.takeExpired(13_000), [{ stream: 2, finalBytes: 1300 }])
  assert.deepEqual(outcomes, ['long refused: the peer takes 1300 of its 3000 bytes, and no more within 2000 ms'])
  assert.deepEqual([streams.active, streams.stalledDueMs], [0, Number.POSITIVE_INFINITY])
  assert.deepEqual(streams.takeExpired(99_000), [])
})

test('at the limit of stalled streams a further long one is busy, short ones are not', () => {
  const { streams, outcomes, offer, sendAll } = open()
  for (const name of ['a', 'b', 'c', 'd']) offer(name, 2000)
  offer('short', 1232)
  assert.deepEqual(sendAll().slice(-2), ['10: 0+1100', '10: 1100+132 end'])
  const busy = 'busy: 2 streams longer than the 1232 bytes that the peer takes are waiting'
  assert.deepEqual(outcomes, [`c ${busy}`, `d ${busy}`, 'short delivered: '])
  assert.equal(streams.active, 2)
})

test('the final size of a stopped stream is what was sent of it', () => {
  const { streams, offer, outcomes } = open()
  offer('long', 2000)
  assert.equal(streams.next(ROOM, 0)?.data.length, 1100)
  assert.deepEqual(streams.stop(2), { isKnown: true, finalBytes: 1100 })
  offer('stalled', 2000)
  for (let n = 0; n < 2; n++) streams.next(ROOM, 0)
  assert.deepEqual(streams.stop(6), { isKnown: true, finalBytes: 1232 })
  assert.equal(streams.stalledDueMs, Number.POSITIVE_INFINITY)
  assert.deepEqual(outcomes, ['long refused: ', 'stalled refused: '])
})

test('the limit of the connection blocks all streams, and a part of a piece is sent within it', () => {
  const { streams, offer, sendAll } = open({ dataMax: 700 })
  offer('a', 500)
  offer('b', 500)
  assert.deepEqual(sendAll(), ['2: 0+500 end', '6: 0+200'])
  assert.deepEqual(streams.blocked, { by: 'data', at: 700 })
  streams.raiseData(1000)
  assert.deepEqual(sendAll(), ['6: 200+300 end'])
  assert.equal(streams.blocked, undefined)
})

test('a peer without a window for streams gets none of their bytes; a stream without bytes needs none', () => {
  const { streams, outcomes, offer, sendAll } = open({ streamDataMax: 0 })
  offer('a', 10)
  offer('empty', 0)
  assert.deepEqual(sendAll(), ['6: 0+0 end'])
  assert.deepEqual(streams.takeExpired(2000), [{ stream: 2, finalBytes: 0 }])
  assert.equal(outcomes.length, 2)
})

test('whatever the limits, the losses and the order of raises: no limit is exceeded and every byte arrives once acknowledged', (t) => {
  const history = fc.property(fc.nat(), (seed) => {
    const random = createRandom(seed)
    const streamDataMax = random(2000)
    const streams = new SendStreams({ ...OPTIONS, stalledMax: 512 })
    let dataMax = random(3000)
    let streamsMax = random(4)
    streams.begin({ dataMax, streamDataMax, streamsMax })
    const sizes = Array.from({ length: 1 + random(8) }, () => random(4097))
    const outcomes: string[] = []
    for (const size of sizes) streams.offer(new Uint8Array(size), (outcome) => outcomes.push(outcome))
    const limits = new Map<number, number>()
    const ends = new Map<number, number>()
    let inFlight: StreamPiece[] = []
    for (let step = 0; outcomes.length < sizes.length; step++) {
      assert.ok(step < 5000, 'every stream has an outcome')
      for (let piece = streams.next(ROOM, step); piece !== undefined; piece = streams.next(ROOM, step)) {
        const end = piece.offset + piece.data.length
        assert.ok(end <= (limits.get(piece.stream) ?? streamDataMax), 'within the limit of the stream')
        assert.ok((piece.stream - 2) / 4 < streamsMax, 'within the number of streams')
        const size = sizes[(piece.stream - 2) / 4] as number
        assert.equal(piece.isLast, end === size)
        ends.set(piece.stream, Math.max(ends.get(piece.stream) ?? 0, end))
        inFlight.push(piece)
      }
      assert.ok([...ends.values()].reduce((sum, end) => sum + end, 0) <= dataMax, 'within the limit of the connection')
      inFlight = inFlight.filter((piece) => {
        if (random(3) === 0) return true
        if (random(4) === 0) piece.carried.lost()
        else piece.carried.acked()
        return false
      })
      streams.raiseData((dataMax += random(2000)))
      if (random(3) === 0) streams.raiseStreams((streamsMax += 1))
      const id = 2 + 4 * random(sizes.length)
      const raised = (limits.get(id) ?? streamDataMax) + random(1500)
      if (streams.raiseStreamData(id, raised)) limits.set(id, raised)
    }
    assert.deepEqual(new Set(outcomes), new Set(['delivered']))
    assert.deepEqual(
      [...ends].sort(([a], [b]) => a - b).map(([, end]) => end),
      sizes,
    )
  })
  checkProperty(t, history, 200, 5000)
})
