import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty, createRandom } from '../../../test/support/process/property.ts'
import { SendStreams, type StreamPiece } from './send-streams.ts'

const ROOM = 1170
const OPTIONS = { queuedMax: 512, activeMax: 512, pieceBytesMax: 1100 }

function open(limits: { dataMax?: number; streamDataMax?: number; streamsMax?: number } = {}) {
  const streams = new SendStreams(OPTIONS)
  streams.begin({ dataMax: 1_000_000, streamDataMax: 1232, streamsMax: 128, ...limits })
  const outcomes: string[] = []
  const offer = (name: string, bytes: number) =>
    assert.ok(streams.offer(new Uint8Array(bytes), (outcome, reason) => outcomes.push(`${name} ${outcome}: ${reason}`)))
  /** Sends all that may be sent, as text. */
  const sendAll = (): string[] => {
    const sent: string[] = []
    for (let piece = streams.next(ROOM); piece !== undefined; piece = streams.next(ROOM)) {
      sent.push(`${piece.stream}: ${piece.offset}+${piece.data.length}${piece.isLast ? ' end' : ''}`)
      piece.carried.acked()
    }
    assert.equal(streams.hasToSend(), false)
    return sent
  }
  return { streams, outcomes, offer, sendAll }
}

test('a stream longer than the window of the peer is refused before a byte of it is sent, and the others are sent', () => {
  const { streams, outcomes, offer, sendAll } = open()
  offer('long', 1233)
  offer('longest', 4096)
  offer('just fits', 1232)
  offer('a', 500)
  assert.deepEqual(sendAll(), ['2: 0+1100', '2: 1100+132 end', '6: 0+500 end'])
  assert.deepEqual(outcomes, [
    'long refused: the peer takes streams of 1232 bytes, and this one has 1233',
    'longest refused: the peer takes streams of 1232 bytes, and this one has 4096',
    'just fits delivered: ',
    'a delivered: ',
  ])
  assert.deepEqual([streams.active, streams.queued, streams.blocked], [0, 0, undefined])
})

test('a long stream is refused at once though all streams of the peer are used up', () => {
  const { streams, outcomes, offer, sendAll } = open({ streamsMax: 1 })
  for (const name of ['a', 'b']) offer(name, 500)
  offer('long', 2000)
  assert.deepEqual([sendAll(), outcomes.length], [['2: 0+500 end'], 2])
  assert.match(outcomes[0] ?? '', /^long refused/)
  assert.equal(streams.queued, 1)
})

test('a long stream that was offered before the handshake is refused with its end', () => {
  const streams = new SendStreams(OPTIONS)
  const outcomes: string[] = []
  for (const bytes of [500, 2000, 600]) streams.offer(new Uint8Array(bytes), (outcome) => outcomes.push(outcome))
  assert.deepEqual(outcomes, [])
  streams.begin({ dataMax: 1_000_000, streamDataMax: 1232, streamsMax: 0 })
  assert.deepEqual([outcomes, streams.queued], [['refused'], 2])
})

test('a higher window of one stream, which none needs, is no error; one of a stream that was never opened is', () => {
  const { streams, offer, sendAll } = open()
  offer('a', 500)
  sendAll()
  assert.deepEqual([streams.isOpened(2), streams.isOpened(6), streams.isOpened(3)], [true, false, false])
})

test('the final size of a stopped stream is what was sent of it', () => {
  const { streams, offer, outcomes } = open()
  offer('stopped', 1200)
  assert.equal(streams.next(ROOM)?.data.length, 1100)
  assert.deepEqual(streams.stop(2), { isKnown: true, finalBytes: 1100 })
  assert.equal(streams.hasToSend(), false)
  assert.deepEqual(outcomes, ['stopped refused: '])
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
  const { outcomes, offer, sendAll } = open({ streamDataMax: 0 })
  offer('a', 10)
  offer('empty', 0)
  assert.deepEqual(sendAll(), ['2: 0+0 end'])
  assert.deepEqual(outcomes, ['a refused: the peer takes streams of 0 bytes, and this one has 10', 'empty delivered: '])
})

test('whatever the limits, the losses and the order of raises: no limit is exceeded and every byte arrives once acknowledged', (t) => {
  const history = fc.property(fc.nat(), (seed) => {
    const random = createRandom(seed)
    const streamDataMax = random(4097)
    const streams = new SendStreams(OPTIONS)
    let dataMax = random(3000)
    let streamsMax = random(4)
    streams.begin({ dataMax, streamDataMax, streamsMax })
    const sizes = Array.from({ length: 1 + random(8) }, () => random(4097))
    const sent = sizes.filter((size) => size <= streamDataMax)
    const outcomes: string[] = []
    for (const size of sizes) streams.offer(new Uint8Array(size), (outcome) => outcomes.push(outcome))
    const ends = new Map<number, number>()
    let inFlight: StreamPiece[] = []
    for (let step = 0; outcomes.length < sizes.length; step++) {
      assert.ok(step < 5000, 'every stream has an outcome')
      for (let piece = streams.next(ROOM); piece !== undefined; piece = streams.next(ROOM)) {
        const end = piece.offset + piece.data.length
        assert.ok(end <= streamDataMax, 'within the limit of the stream')
        assert.ok((piece.stream - 2) / 4 < streamsMax, 'within the number of streams')
        const size = sent[(piece.stream - 2) / 4] as number
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
    }
    assert.deepEqual(
      [
        outcomes.filter((outcome) => outcome === 'delivered').length,
        outcomes.filter((one) => one === 'refused').length,
      ],
      [sent.length, sizes.length - sent.length],
    )
    assert.deepEqual(
      [...ends].sort(([a], [b]) => a - b).map(([, end]) => end),
      sent,
    )
  })
  checkProperty(t, history, 200, 5000)
})
