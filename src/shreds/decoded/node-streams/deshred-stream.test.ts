import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { deshredUpdate } from '../../../../test/support/gateway/upstream-updates.ts'
import { createRandom } from '../../../../test/support/process/property.ts'
import { makeBlock } from '../../../../test/support/shreds/decoded-blocks.ts'
import { createManualClock } from '../../../core/clock.ts'
import { frameMessage } from '../../../platform/grpc/framing.ts'
import { GrpcCode } from '../../../platform/grpc/status.ts'
import type { GrpcEnd, GrpcStream } from '../../../platform/grpc/stream.ts'
import { silentLogger } from '../../../platform/telemetry/logger.ts'
import { SlotStatus, SubscribeUpdateDeshredSchema } from '../../../solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../../solana/geyser/protobuf.ts'
import { parseTransaction } from '../../../solana/transaction/transaction.ts'
import { createOutputMemory, openOutputReader, openOutputWriter } from '../output-ring.ts'
import { followDeshred } from './deshred-stream.ts'
import { decodeRecord, type UpstreamRecord } from './records.ts'

/** A node whose stream the test feeds and ends, and the records that the engine's thread gets. */
async function follow() {
  const memory = createOutputMemory(1024 * 1024)
  const records = openOutputReader(memory)
  const clock = createManualClock()
  const counts = { invalid: 0, woken: 0, written: 0, room: Number.POSITIVE_INFINITY }
  let onData: ((bytes: Buffer, release: () => void) => void) | undefined
  let onEnd: ((end: GrpcEnd) => void) | undefined
  const end = (code: number) => onEnd?.({ status: { code }, isFromServer: true })
  const stream: GrpcStream = {
    write: () => (counts.written += 1) < counts.room,
    onWritable: () => undefined,
    halfClose: () => undefined,
    cancel: () => end(GrpcCode.cancelled),
    onHeaders: () => undefined,
    onData: (listener) => void (onData = listener),
    pause: () => undefined,
    resume: () => undefined,
    onEnd: (listener) => void (onEnd = listener),
  }
  const following = followDeshred(
    { name: 'node', source: 3 },
    {
      clock,
      log: silentLogger,
      random: { float: () => 0.5, bytes: (count) => new Uint8Array(count) },
      open: async () => stream,
      output: openOutputWriter(memory),
      wake: () => void (counts.woken += 1),
      onInvalid: () => void (counts.invalid += 1),
    },
  )
  await nextTurn()
  return {
    ...{ clock, counts, end },
    /** The records that this message makes. */
    send(message: Uint8Array): UpstreamRecord[] {
      const frames = frameMessage(message)
      onData?.(frames, () => undefined)
      // As a connection does, which reads into the same memory again.
      frames.fill(0xff)
      return this.take()
    },
    take(): UpstreamRecord[] {
      const taken: UpstreamRecord[] = []
      for (let record = records.next(); record !== undefined; record = records.next())
        taken.push(decodeRecord(record.payload))
      return taken
    },
    [Symbol.dispose]: () => following[Symbol.dispose](),
  }
}

type Update = NonNullable<Parameters<typeof encodeMessage<typeof SubscribeUpdateDeshredSchema>>[1]['updateOneof']>
const updateOf = (updateOneof: Update) => encodeMessage(SubscribeUpdateDeshredSchema, { updateOneof })
const PING = updateOf({ case: 'ping', value: {} })
const statusOf = (status: SlotStatus) => updateOf({ case: 'slot', value: { slot: 77n, status } })

test('transactions and the ends of slots of a node become records of its stream, and a ping is returned', async () => {
  using node = await follow()
  const before = node.counts.written
  assert.deepEqual(
    node.send(PING).map(({ kind, source }) => [kind, source]),
    [['opened', 3]],
  )
  assert.equal(node.counts.written, before + 1)
  const place = { slot: 77, startIndex: 32, endIndex: 64 }
  const [wire] =
    makeBlock({ slot: 77, parentSlot: 76, batchBytes: [500] }, createRandom(1)).dataSets[0]?.transactions ?? []
  assert.ok(wire !== undefined)
  const message = deshredUpdate(place, wire)
  const [record] = node.send(message)
  assert.ok(record?.kind === 'transaction')
  const { slot, startIndex, endIndex, update } = record
  assert.deepEqual({ slot, startIndex, endIndex }, place)
  assert.ok(Buffer.from(message).includes(update), 'as it came')
  assert.deepEqual(
    [SlotStatus.SLOT_COMPLETED, SlotStatus.SLOT_DEAD, SlotStatus.SLOT_PROCESSED].map((status) =>
      node.send(statusOf(status)).map(({ kind }) => kind),
    ),
    [['completed'], ['incomplete'], []],
  )
  assert.ok(node.counts.woken >= 4)
})

test('the record of a transaction notes whether addresses of lookup tables are missing', async () => {
  using node = await follow()
  node.send(PING)
  const block = makeBlock({ slot: 77, parentSlot: 76, batchBytes: [20_000] }, createRandom(1))
  const seen = new Set<boolean>()
  for (const wire of block.dataSets[0]?.transactions ?? []) {
    const parse = parseTransaction(wire)
    const [record] = node.send(deshredUpdate({ slot: 77, startIndex: 32, endIndex: 64 }, wire))
    assert.ok(parse.ok && record?.kind === 'transaction')
    const hasLookups = parse.transaction.addressTableLookups.length > 0
    assert.equal(record.hasUnknownTable, hasLookups, 'the node has sent no loaded address')
    seen.add(hasLookups)
  }
  assert.equal(seen.size, 2)
})

test('a message that cannot be read as a transaction is counted, and the node has not delivered all: the record says so', async () => {
  using node = await follow()
  node.send(PING)
  const unknown = updateOf({ case: 'deshredTransaction', value: { slot: 77n } })
  const truncated = statusOf(SlotStatus.SLOT_PROCESSED).slice(0, -1)
  for (const message of [unknown, truncated])
    assert.deepEqual(
      node.send(message).map(({ kind, source }) => [kind, source]),
      [['incomplete', 3]],
    )
  assert.equal(node.counts.invalid, 2)
})

test('a stream that ends is reported as ended, and the next one has another number', async () => {
  using node = await follow()
  const [first] = node.send(PING)
  node.end(GrpcCode.unavailable)
  assert.deepEqual(node.take(), [{ kind: 'ended', source: 3, stream: first?.stream }])
  node.clock.advance(1000)
  await nextTurn()
  const [second] = node.send(PING)
  assert.equal(second?.kind, 'opened')
  assert.notEqual(second?.stream, first?.stream)
  // What still comes of a stream that was given up because it was silent is ignored.
  node.clock.advance(40_000)
  assert.deepEqual(
    node.take().map(({ kind }) => kind),
    ['ended'],
  )
  assert.deepEqual(node.send(PING), [])
  node.clock.advance(1000)
  await nextTurn()
  node.send(PING)
  // A message that is too large ends the stream too.
  assert.deepEqual(
    node.send(new Uint8Array(64 * 1024 + 1)).map(({ kind }) => kind),
    ['ended'],
  )
})

test('a node that sends pings and reads nothing is not written to without bound', async () => {
  const node = await follow()
  node.counts.room = 5
  for (let pings = 0; pings < 50; pings++) node.send(PING)
  assert.equal(node.counts.written, 5)
})
