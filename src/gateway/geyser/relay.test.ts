import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createManualClock } from '../../core/clock.ts'
import type { GrpcCall } from '../../platform/grpc/call.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import type { GrpcEnd } from '../../platform/grpc/stream.ts'
import { DecodedStream } from './decoded/stream.ts'
import { StreamRelay } from './relay.ts'
import { SeenBanks } from './seen-banks.ts'

function openStream(): DecodedStream {
  return new DecodedStream({
    pendingBytesMax: 1000,
    clock: createManualClock(),
    onRequest() {},
    onEnd() {},
    onLost() {},
    endsOnLoss: false,
  })
}

/** A call whose customer the test is. */
function openCall() {
  const closed: ((status?: GrpcStatus) => void)[] = []
  const halfClosed: (() => void)[] = []
  const writable: (() => void)[] = []
  const call = {
    isOver: false,
    ...{ onMessage() {}, pauseMessages() {}, resumeMessages() {}, sendHeaders() {}, end() {} },
    onWritable: (listener: () => void) => void writable.push(listener),
    onHalfClose: (listener: () => void) => void halfClosed.push(listener),
    onClose: (listener: (status?: GrpcStatus) => void) => void closed.push(listener),
    // The customer does not read.
    writePieces: () => false,
  }
  return {
    call: call as unknown as GrpcCall,
    disconnect: () => closed.forEach((listener) => listener()),
    halfClose: () => halfClosed.forEach((listener) => listener()),
    read: () => writable.forEach((listener) => listener()),
  }
}

function endWithTrailersOnly(stream: DecodedStream): void {
  const onEnd = stream.onEnd.bind(stream)
  stream.onHeaders = () => {}
  stream.onEnd = (listener) => onEnd((end) => listener({ ...end, isTrailersOnly: true }))
}

/** A relay that has lost its first node and waits for `found`. */
function openRelay({
  hasHeaders = true,
  onUpstreamEnd = (_end: GrpcEnd): void => assert.fail('it moves to another node'),
} = {}) {
  const { call, disconnect, halfClose } = openCall()
  const statuses: GrpcStatus[] = []
  const errors: unknown[] = []
  call.end = (status) => void statuses.push(status)
  const [first, second] = [openStream(), openStream()]
  if (!hasHeaders) endWithTrailersOnly(first)
  const searching = Promise.withResolvers<object | undefined>()
  const ends: unknown[] = []
  const relay = new StreamRelay({
    call,
    nodeStream: first,
    metadata: () => ({}),
    monotonicMs: () => 0,
    meter: { messagesOut: { inc() {} }, bytesOut: { inc() {} } },
    onSent() {},
    messageLimits: { bytesMax: () => 1000 },
    accepts: () => true,
    onUpstreamEnd,
    onError: (error) => void errors.push(error),
    resume: { banks: new SeenBanks(), onData() {}, onLive() {}, next: async () => (await searching.promise) as never },
    onEnd: (atNode) => ends.push(atNode),
  })
  relay.start()
  const ended = { banks: 0, frames: new Uint8Array() }
  const find = async () => {
    searching.resolve({ stream: second, request: new Uint8Array(), fromSlot: 1, ended })
    await nextTurn()
  }
  const findNone = async () => {
    searching.resolve(undefined)
    await nextTurn()
  }
  const failToFind = async () => {
    searching.reject(new Error('a defect'))
    await nextTurn()
  }
  return { relay, first, second, ends, statuses, errors, disconnect, halfClose, find, findNone, failToFind }
}

test('a client that disconnects while another node is searched for has no open call at that node', async () => {
  const { relay, first, second, ends, disconnect, find } = openRelay()
  first.finish({ code: GrpcCode.unavailable })
  disconnect()
  assert.deepEqual(ends, [undefined], 'there is no call at a node that could be cancelled')
  await find()
  assert.deepEqual([second.isOver, relay.moves, ends.length], [true, 0, 1])
})

test('a node whose limit refuses a call is given up, and one that ends a call with RESOURCE_EXHAUSTED later is not', async () => {
  const code = GrpcCode.resourceExhausted
  for (const hasHeaders of [false, true]) {
    const passed: number[] = []
    const opened = openRelay({ hasHeaders, onUpstreamEnd: ({ status }) => void passed.push(status.code) })
    opened.first.finish({ code })
    await opened.find()
    assert.deepEqual([opened.relay.moves, passed], hasHeaders ? [0, [code]] : [1, []])
  }
})

test('a node that refuses the gateway or lacks the method is given up; with no other one, its status ends a call of which the client has nothing', async () => {
  for (const code of [GrpcCode.unauthenticated, GrpcCode.permissionDenied, GrpcCode.unimplemented]) {
    for (const hasHeaders of [false, true]) {
      const passed: number[] = []
      const opened = openRelay({ hasHeaders, onUpstreamEnd: ({ status }) => void passed.push(status.code) })
      opened.first.finish({ code })
      assert.deepEqual([passed, opened.statuses], [[], []])
      await opened.findNone()
      const sent = opened.statuses.map((status) => status.code)
      assert.deepEqual([passed, sent], hasHeaders ? [[], [14]] : [[code], []])
    }
  }
})

test('a defect in the search for another node ends the call and nothing else', async () => {
  const { first, statuses, errors, ends, failToFind } = openRelay()
  first.finish({ code: GrpcCode.unavailable })
  await failToFind()
  assert.deepEqual([statuses.map(({ code }) => code), errors.length, ends.length], [[14], 1, 1])
})

test('a call at another node is paused where the customer does not read, and half-closed where the customer has', async () => {
  const { relay, first, second, halfClose, find } = openRelay()
  const seen: string[] = []
  second.pause = () => void seen.push('paused')
  second.halfClose = () => void seen.push('half-closed')
  first.add(1, [], Uint8Array.of(1))
  first.flush()
  halfClose()
  first.finish({ code: GrpcCode.unavailable })
  await find()
  assert.deepEqual([relay.moves, seen], [1, ['paused', 'half-closed']])
})

test('messages of a decoded stream are written in one piece and counted as those of a node', () => {
  const { call, read } = openCall()
  const written: Uint8Array[] = []
  const counted = { messages: 0, bytes: 0, sent: 0 }
  const writeFramed = (frames: Uint8Array) => written.push(frames) < 2
  const stream = openStream()
  const relay = new StreamRelay({
    call: Object.assign(call, { writeFramed, writePieces: () => assert.fail('these are whole messages') }),
    nodeStream: stream,
    metadata: () => ({}),
    monotonicMs: () => 0,
    meter: {
      messagesOut: { inc: (by) => void (counted.messages += by ?? 1) },
      bytesOut: { inc: (by) => void (counted.bytes += by ?? 1) },
    },
    onSent: (bytes) => void (counted.sent += bytes),
    messageLimits: { bytesMax: () => 1000 },
    accepts: () => true,
    onUpstreamEnd() {},
    onError: () => assert.fail('it has one node only'),
    onEnd() {},
  })
  relay.start()
  for (const count of [2, 1, 1]) {
    for (let i = 0; i < count; i++) stream.add(7, [Uint8Array.of(1)], Uint8Array.of(2, 3))
    stream.flush()
  }
  assert.deepEqual(
    written.map((frames) => [...frames]),
    [
      [0, 0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0, 3, 1, 2, 3],
      [0, 0, 0, 0, 3, 1, 2, 3],
    ],
    'after the second write the customer does not read',
  )
  assert.deepEqual([counted, relay.bytesOut], [{ messages: 3, bytes: 24, sent: 9 }, 24])
  read()
  assert.deepEqual([counted, written.length], [{ messages: 4, bytes: 32, sent: 12 }, 3], 'what waited is counted, too')
  assert.equal(relay.lastDataMs, undefined)
})

test('the metadata of a call comes with its headers, and with its end where it was not sent or has changed', () => {
  for (const { hasHeaders, hasChanged } of [
    { hasHeaders: false, hasChanged: false },
    { hasHeaders: true, hasChanged: false },
    { hasHeaders: true, hasChanged: true },
  ]) {
    const { call } = openCall()
    const headers: unknown[] = []
    const trailers: unknown[] = []
    call.sendHeaders = (sent) => void headers.push(sent?.['cost'])
    call.end = ({ metadata }) => void trailers.push(metadata?.['cost'])
    const stream = openStream()
    if (!hasHeaders) stream.onHeaders = () => {}
    let metadata = { cost: '1' }
    const relay = new StreamRelay({
      ...{ call, nodeStream: stream, metadata: () => metadata, monotonicMs: () => 0, onSent() {}, onUpstreamEnd() {} },
      ...{ messageLimits: { bytesMax: () => 1000 }, accepts: () => true, onError() {}, onEnd() {} },
      meter: { messagesOut: { inc() {} }, bytesOut: { inc() {} } },
    })
    relay.start()
    if (hasChanged) metadata = { cost: '0' }
    relay.end({ code: GrpcCode.invalidArgument })
    assert.deepEqual([headers, trailers], [hasHeaders ? ['1'] : [], [hasChanged ? '0' : hasHeaders ? undefined : '1']])
  }
})
