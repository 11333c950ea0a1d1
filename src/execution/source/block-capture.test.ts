import assert from 'node:assert/strict'
import { test } from 'node:test'
import { finish } from '../../core/work.ts'
import { ExecRecorder } from '../../evm/event/recorder.ts'
import { EVENT } from '../../evm/event/type.ts'
import { EventBatch } from '../../evm/ring/event-batch.ts'
import { createSmallRing, openReader } from '../../evm/ring/test-ring.ts'
import { recordBlock, TIMES } from '../../evm/test-block.ts'
import { blockTransactions } from '../rpc/block-transactions.ts'
import { HeldBlock } from '../rpc/held-block.ts'
import { BlockCapture } from './block-capture.ts'
import type { BlockContent } from './message.ts'

const KEPT: readonly number[] = [
  EVENT.BLOCK_START,
  EVENT.TXN_HEADER_START,
  EVENT.TXN_PERF_EVM_ENTER,
  EVENT.TXN_PERF_EVM_EXIT,
  EVENT.TXN_EVM_OUTPUT,
  EVENT.TXN_LOG,
  EVENT.BLOCK_END,
]

type Held = BlockContent
type Event = { seqno: number; payload: string }

/** Blocks with so many logs each, written and captured one after the other. */
function captureAll(
  logsOfBlocks: readonly number[],
  blockBytesMax = 2 ** 26,
): { held: (Held | undefined)[]; wanted: Event[][] } {
  const ring = createSmallRing({ capacity: 2 ** 15, payloadBytes: 2 ** 25, windowStepBytes: 2 ** 20 })
  const writer = new ExecRecorder(ring.writer)
  const reader = openReader(ring.source, { seqno: 1 }, { eventsMax: 100 })
  const capture = new BlockCapture({ blockBytesMax })
  const held: (Held | undefined)[] = []
  const wanted: Event[][] = []
  for (const [at, logs] of logsOfBlocks.entries()) {
    recordBlock(writer, { number: at + 1, txns: [{ accesses: [{ contract: 1, slot: 1 }], logs }, { accesses: [] }] })
    writer.flush()
    const events: Event[] = []
    while (reader.poll(0).kind === 'events') {
      const { batch } = reader
      for (let event = 0; event < batch.count; event++) {
        capture.add(batch, event)
        if (KEPT.includes(batch.type(event))) events.push(eventAt(batch, event))
      }
    }
    wanted.push(events)
    held.push(capture.take() as Held | undefined)
  }
  return { held, wanted }
}

function eventsOf(block: Held): Event[] {
  const batch = EventBatch.over(block)
  return Array.from({ length: batch.count }, (_, at) => eventAt(batch, at))
}

function eventAt(batch: EventBatch, at: number): Event {
  return { seqno: batch.seqno(at), payload: Buffer.from(batch.payload(at) ?? assert.fail()).toString('base64') }
}

test('a recorded block keeps its events when later blocks are recorded', () => {
  // Growing in the middle of a block, shrinking from one to the next, and back.
  const { held, wanted } = captureAll([1, 3000, 2, 2, 5000, 4900, 700, 3, 9000, 5])
  for (const [at, block] of held.entries()) {
    assert.ok(block !== undefined)
    assert.equal(block.number, at + 1)
    const [first] = eventsOf(block).filter(({ payload }, event) => payload !== wanted[at]?.[event]?.payload)
    assert.deepEqual([first, eventsOf(block).length], [undefined, wanted[at]?.length])
  }
})

test('a small block does not hold the memory of a large one, and no two blocks share memory', () => {
  const { held } = captureAll([9000, 5000, 4900, 4800])
  const parts = held.flatMap((block) =>
    block === undefined ? [] : [block.descriptors, block.payloads, block.payloadAt],
  )
  assert.equal(new Set(parts.map(({ buffer }) => buffer)).size, 12)
  for (const { buffer, byteLength } of parts) assert.ok(buffer.byteLength <= byteLength * 2)
  const [, , third, fourth] = held
  // Blocks of about one size are handed over where they were gathered.
  for (const block of [third, fourth])
    assert.ok((block?.payloads.buffer.byteLength ?? 0) > (block?.payloads.length ?? 0))
})

test('a block above blockBytesMax is discarded, the next one is recorded', () => {
  const { held, wanted } = captureAll([3000, 1], 50_000)
  assert.ok(held[0] === undefined)
  assert.deepEqual(eventsOf(held[1] ?? assert.fail()), wanted[1])
})

test('the transactions of a recorded block have the times of their perf markers', () => {
  const [content = assert.fail()] = captureAll([2]).held
  const held = new HeldBlock(content, 1)
  const { number, id, hash, bloom } = held
  const handle = {
    ...{ number, id, hash, bloom, txnCount: 2 },
    *load() {
      yield
      return held
    },
  }
  const page = finish(blockTransactions(handle, { limit: 10, offset: 0 }, { take() {}, charge() {} }))
  const times = page?.transactions.map(({ waiting_ns, execution_ns }) => [waiting_ns, execution_ns])
  assert.deepEqual(times, [
    [10, Number(TIMES.txnSpan)],
    [11, Number(TIMES.txnSpan)],
  ])
  assert.equal(page?.gas_used, 42_000)
})
