import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createManualClock } from '../../../core/clock.ts'
import { createMessageReader, frameMessage } from '../../../platform/grpc/framing.ts'
import { GrpcCode } from '../../../platform/grpc/status.ts'
import type { GrpcEnd, GrpcStream } from '../../../platform/grpc/stream.ts'
import { createTimeSlices } from '../../../platform/process/time-slices.ts'
import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import { SubscribeDeshredRequestSchema, SubscribeUpdateDeshredSchema } from '../../../solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../../solana/geyser/protobuf.ts'
import type { DecodedMethod } from '../methods.ts'
import type { DecodedDataSet, DecodedReader } from './source.ts'
import { createDecodedStreams, type DecodedStreamsDeps } from './streams.ts'
import { decodedTransaction } from './test-transactions.ts'

const PENDING_BYTES_MAX = 64 * 1024
type Request = Parameters<typeof encodeMessage<typeof SubscribeDeshredRequestSchema>>[1]

/** Streams whose source and clients are the test. */
function open(deps: Partial<DecodedStreamsDeps> = {}) {
  const clock = createManualClock()
  const lost = { client: 0, thread: 0 }
  const counts = { delivered: 0 }
  const on: { reader: DecodedReader | undefined } = { reader: undefined }
  const streams = createDecodedStreams(
    { filtersMax: 4, pendingBytesMax: PENDING_BYTES_MAX },
    {
      clock,
      source: {
        read(reader) {
          on.reader = reader
          return { [Symbol.dispose]: () => void (on.reader = undefined) }
        },
      },
      meter: { delivered: () => void (counts.delivered += 1), lost: (by, messages) => void (lost[by] += messages) },
      ...deps,
    },
  )
  return {
    ...{ clock, lost, counts, on, streams },
    /** A stream and what its client receives. */
    client(method: DecodedMethod = 'SubscribeDeshred', onBytes: (stream: GrpcStream) => void = () => undefined) {
      const stream = streams.open(method)
      const kinds: (string | undefined)[] = []
      const ends: GrpcEnd[] = []
      const reader = createMessageReader({ messageBytesMax: 1 << 20 }, (message) => {
        const update = decodeMessage(SubscribeUpdateDeshredSchema, Uint8Array.from(message))
        kinds.push(method === 'SubscribeEntries' ? 'entries' : update?.updateOneof.case)
      })
      let bytes = 0
      stream.onData((frames, release) => {
        bytes += frames.length
        reader.push(frames, release)
        onBytes(stream)
      })
      stream.onEnd((end) => void ends.push(end))
      return {
        ...{ stream, kinds, ends },
        bytes: () => bytes,
        request: (init: Request) => stream.write(frameMessage(encodeMessage(SubscribeDeshredRequestSchema, init))),
      }
    },
    publish(transactions: number, slot = 100): void {
      on.reader?.onDataSet(dataSet(transactions, slot))
      void on.reader?.onBatchEnd()
    },
  }
}

function dataSet(transactions: number, slot = 100): DecodedDataSet {
  return {
    ...{ slot, startIndex: 0, endIndex: 32, entries: Buffer.alloc(100), arrivalNanos: 0 },
    transactions: Array.from({ length: transactions }, (_, n) => decodedTransaction(n, { fixed: [1, 2, 3] })),
  }
}

const ALL: Request = { deshredTransactions: { all: {} } }
const countOf = (kinds: readonly unknown[], kind: string) => kinds.filter((each) => each === kind).length

test('a stream whose client goes while it is written to takes its filters with it, and the others stay', () => {
  // Within a batch, or with a pong, which is written before the filters are replaced.
  for (const leaves of [{ slots: { slots: {} }, ping: { id: 1 } }, { ...ALL, ping: { id: 1 } }, undefined]) {
    const { client, publish, counts } = open()
    const other = client()
    let isLeaving = false
    const leaving = client('SubscribeDeshred', (stream) => void (isLeaving && stream.cancel()))
    for (const { request } of [other, leaving]) request(ALL)
    isLeaving = true
    if (leaves !== undefined) leaving.request(leaves)
    publish(3)
    publish(2)
    assert.equal(countOf(other.kinds, 'deshredTransaction'), 5)
    assert.equal(countOf(leaving.kinds, 'deshredTransaction'), leaves === undefined ? 3 : 0)
    other.stream.cancel()
    const last = client()
    last.request({ deshredTransactions: { votes: { vote: true } } })
    const before = counts.delivered
    publish(1)
    assert.equal(counts.delivered, before, 'no filter is left')
  }
})

test('a stream whose client goes while it is ended is not ended again', () => {
  const { client, on } = open()
  const leaving = client('SubscribeEntries', (stream) => stream.cancel())
  leaving.request({})
  const set = { slot: 100, startIndex: 0, endIndex: 32, entries: Buffer.alloc(100), arrivalNanos: 0, transactions: [] }
  on.reader?.onDataSet(set)
  // What was added is delivered first.
  on.reader?.onSlot({ kind: 'lost', slot: 100, parentSlot: undefined, reason: 'too large', isDecoded: true })
  assert.deepEqual([leaving.kinds, leaving.ends, on.reader], [['entries'], [], undefined])
})

test('streams are flushed a few in the first turn and more in the next, and what came is counted as delivered after the last of them', async () => {
  const turns: (() => void)[] = []
  const nextTurn = () => new Promise<void>((resolve) => turns.push(resolve))
  const { client, on, counts } = open({ slices: createTimeSlices(() => 0, { nextTurn }) })
  const clients = Array.from({ length: 26 }, () => client())
  for (const { request } of clients) request(ALL)
  on.reader?.onDataSet(dataSet(1))
  const ended = on.reader?.onBatchEnd()
  const flushed = () => clients.filter(({ kinds }) => countOf(kinds, 'deshredTransaction') === 1).length
  assert.deepEqual([flushed(), turns.length], [8, 1])
  // One that has not been flushed goes meanwhile, and another comes.
  clients[25]?.stream.cancel()
  client().request(ALL)
  turns[0]?.()
  await setImmediate()
  assert.deepEqual([flushed(), turns.length, counts.delivered], [24, 2, 0])
  turns[1]?.()
  await ended
  assert.deepEqual([flushed(), turns.length, counts.delivered], [25, 2, 1])
})

test('a filter without accounts selects all, and an empty request none', () => {
  const { client, publish } = open()
  const one = client()
  one.request({ deshredTransactions: { empty: { accountInclude: [], accountExclude: [], accountRequired: [] } } })
  publish(2)
  assert.equal(countOf(one.kinds, 'deshredTransaction'), 2)
  one.request({ ping: { id: 1 } })
  publish(1)
  assert.equal(countOf(one.kinds, 'deshredTransaction'), 3, 'a ping keeps the filters')
  one.request({})
  publish(5)
  assert.equal(countOf(one.kinds, 'deshredTransaction'), 3)
})

test('what waits for a client that never reads is limited, and ends with the stream', () => {
  const { client, publish, lost } = open()
  const one = client()
  one.request(ALL)
  one.stream.pause()
  const before = one.bytes()
  for (let set = 0; set < 200; set++) publish(50)
  assert.equal(one.bytes(), before)
  const held = 200 * 50 - lost.client
  assert.ok(lost.client > 0)
  one.stream.resume()
  assert.equal(countOf(one.kinds, 'deshredTransaction'), held)
  assert.equal(one.kinds.at(-1), 'slot', 'the report of the loss')
  // One batch may exceed the limit.
  assert.ok(one.bytes() - before <= 2 * PENDING_BYTES_MAX + 64 * 1024)
  one.stream.pause()
  publish(5)
  one.stream.cancel()
  one.stream.resume()
  assert.equal(countOf(one.kinds, 'deshredTransaction'), held, 'nothing follows a cancelled stream')
})

test('a ping comes with the opening and every ten seconds, to streams of transactions alone', () => {
  const { client, clock } = open()
  const one = client()
  const entries = client('SubscribeEntries')
  assert.deepEqual(one.kinds, ['ping'])
  clock.advance(10_000)
  assert.deepEqual(one.kinds, ['ping', 'ping'])
  assert.deepEqual(entries.kinds, [])
})

test('a ping and a pong for which a client that does not read has no room are no loss', () => {
  const { client, clock, publish, lost } = open()
  const [slow, other] = [client(), client()]
  for (const { request } of [slow, other]) request(ALL)
  slow.stream.pause()
  const before = other.bytes()
  while (other.bytes() - before < PENDING_BYTES_MAX) publish(10)
  clock.advance(10_000)
  slow.request({ ping: { id: 1 } })
  assert.equal(lost.client, 0)
  slow.stream.resume()
  publish(10)
  assert.equal(countOf(slow.kinds, 'deshredTransaction'), countOf(other.kinds, 'deshredTransaction'))
  assert.equal(countOf(slow.kinds, 'slot'), 0, 'no loss is reported')
})

test('a stream of entries begins with its request', () => {
  const { client, publish } = open()
  const entries = client('SubscribeEntries')
  publish(0)
  assert.deepEqual(entries.kinds, [])
  entries.request({})
  publish(0)
  assert.deepEqual(entries.kinds, ['entries'])
})

test('all streams end with the server', () => {
  const { client, streams, on } = open()
  const ends = [client(), client('SubscribeEntries')].map(({ ends }) => ends)
  streams[Symbol.dispose]()
  assert.deepEqual(
    ends.map((each) => each.map(({ status }) => status.code)),
    [[GrpcCode.unavailable], [GrpcCode.unavailable]],
  )
  assert.equal(on.reader, undefined)
})

test('slot updates go to streams that ask for them, and a loss to all', () => {
  const { client, on } = open()
  const [none, slots, interslot] = [client(), client(), client()] as const
  none.request(ALL)
  slots.request({ slots: { s: {} } })
  interslot.request({ slots: { s: { interslotUpdates: true } } })
  on.reader?.onSlot({ kind: 'first-shred', slot: 101, parentSlot: undefined })
  on.reader?.onSlot({ kind: 'completed', slot: 101, parentSlot: 100 })
  on.reader?.onSlot({ kind: 'lost', slot: 101, parentSlot: undefined, reason: 'missing' })
  void on.reader?.onBatchEnd()
  assert.deepEqual(
    [none, slots, interslot].map(({ kinds }) => countOf(kinds, 'slot')),
    [1, 2, 3],
  )
})

test('a stream of entries ends with a loss of this server, and goes on after shreds that never arrived', () => {
  const { client, on, publish, lost } = open()
  const entries = client('SubscribeEntries')
  entries.request({})
  on.reader?.onSlot({ kind: 'lost', slot: 101, parentSlot: undefined, reason: 'missing' })
  on.reader?.onDataSet({
    ...{ slot: 102, startIndex: 0, endIndex: 32, entries: undefined, transactions: [], arrivalNanos: 0 },
  })
  publish(0)
  assert.deepEqual([entries.kinds, entries.ends], [['entries'], []], 'a part of an entry is no message')
  on.reader?.onLost(3)
  assert.deepEqual([entries.ends.map(({ status }) => status.code), lost.thread], [[GrpcCode.dataLoss], 3])
})

test('a request that cannot be served is refused with its rule, also later in a stream', () => {
  const { client, streams } = open()
  const ruleOf = (init: Request) =>
    streams.check('SubscribeDeshred', encodeMessage(SubscribeDeshredRequestSchema, init))?.rule
  const filters = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, {}]))
  const address = (bytes: number) => encodeBase58(new Uint8Array(bytes).fill(7))
  assert.equal(ruleOf({ deshredTransactions: filters(4) }), undefined)
  assert.equal(ruleOf({ deshredTransactions: filters(4), slots: { s: {} } }), 'decodedFiltersPerStream')
  for (const [list, bytes, code] of [
    ['accountInclude', 32, undefined],
    ['accountInclude', 31, GrpcCode.invalidArgument],
    ['accountRequired', 33, GrpcCode.invalidArgument],
    ['accountExclude', 31, GrpcCode.invalidArgument],
  ] as const) {
    const { request, ends } = client()
    request({ deshredTransactions: { one: { [list]: [address(bytes)] } } })
    assert.equal(ends[0]?.status.code, code, `${list} ${bytes}`)
  }
  assert.equal(streams.check('SubscribeDeshred', Uint8Array.of(255))?.rule, 'readable')
  assert.equal(streams.check('SubscribeEntries', Uint8Array.of(255)), undefined)
  const one = client()
  one.request(ALL)
  one.request({ deshredTransactions: filters(5) })
  assert.deepEqual(
    one.ends.map(({ status }) => status.code),
    [GrpcCode.invalidArgument],
  )
})
