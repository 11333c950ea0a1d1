import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { createRandom, isFull } from '../../../test/support/process/property.ts'
import { type MadeBlock, makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { LEADER, VERSION } from '../../../test/support/shreds/rig.ts'
import { decodeBatch, encodeEntries } from '../../solana/shred/entry.ts'
import { makeShreds } from '../../solana/shred/make.ts'
import { Engine, type EngineOptions } from './engine.ts'
import type { DataSet, DecodedEvent } from './events.ts'

const OPTIONS: EngineOptions = {
  slotsMax: 64,
  slotsBehindMax: 32,
  bytesMax: 64 * 1024 * 1024,
  shredsPerSlotMax: 32_768,
}
/** FEC sets of the largest slot, which the format limits to 32,768 data shreds. */
const SETS = isFull ? 1024 : 128
/** A step gives one part: 128 kB, or twice that where an entry is as long. It takes about a millisecond; the whole data set took more than 2 s. */
const STEP_BYTES_MAX = 256 * 1024 + 4096

function open() {
  const events: DecodedEvent[] = []
  const engine = new Engine(OPTIONS, (event) => events.push(event))
  const push = (packets: readonly Uint8Array[]): void => {
    for (const packet of packets) engine.push(packet, 0, packet.length, 0, true)
  }
  return { engine, events, push, parts: () => events.filter((event): event is DataSet => event.kind === 'data-set') }
}

function blockOf(slot: number, bytes: number): MadeBlock {
  return makeBlock({ slot, parentSlot: slot - 1, batchBytes: [bytes] }, createRandom(slot))
}

/** The transactions of the parts, and the batches that the parts are, or are together where an entry is cut. */
function contentOf(parts: readonly DataSet[]): { transactions: string[]; batches: Uint8Array[] } {
  const batches: Uint8Array[] = []
  let open: Uint8Array[] = []
  for (const { entriesBytes, part } of parts) {
    assert.equal(part?.isContinuation === true, open.length > 0)
    open.push(entriesBytes)
    if (part?.isContinued === true) continue
    batches.push(Buffer.concat(open))
    open = []
  }
  assert.equal(open.length, 0)
  const transactions = parts.flatMap((part) => part.transactions.map(({ signature }) => hexOf(signature)))
  return { transactions, batches }
}

function hexOf(signature: Uint8Array | undefined): string {
  return Buffer.from(signature ?? []).toString('hex')
}

/** The batches as one: their entries without the counts before them. */
function entriesOf(batches: readonly Uint8Array[]): Buffer {
  return Buffer.concat(batches.map((batch) => batch.subarray(8)))
}

test('the largest slot as one data set, in reverse order: no step delivers more than a part, and other slots are delivered meanwhile', (t) => {
  const { push, engine, parts, events } = open()
  const block = blockOf(10, SETS * 30_816 - 30_000)
  assert.ok(block.fecSets.length >= SETS - 1 && block.fecSets.length <= SETS)
  const packets = block.fecSets.flatMap((set) => set.slice(20, 52)).reverse()
  push(packets.slice(0, -1))
  let longestMs = 0
  let longestBytes = 0
  let steps = 0
  const measured = (run: () => unknown): unknown => {
    const [before, startedMs] = [parts().length, performance.now()]
    const result = run()
    longestMs = Math.max(longestMs, performance.now() - startedMs)
    const bytes = parts()
      .slice(before)
      .reduce((sum, part) => sum + part.entriesBytes.length, 0)
    longestBytes = Math.max(longestBytes, bytes)
    return result
  }
  measured(() => push(packets.slice(-1)))
  assert.equal(parts().length, 0, 'the completing shred only begins it')
  while (measured(() => engine.work()) === true) {
    steps += 1
    if (steps === 3) push(blockOf(11, 500).fecSets[0] ?? [])
  }
  const other = events.findIndex((event) => event.kind === 'data-set' && event.slot === 11)
  assert.ok(other >= 0 && other < events.findIndex((event) => event.kind === 'data-set' && event.slot === 10))
  t.diagnostic(
    `${packets.length} shreds: ${steps} steps, the longest of ${longestMs.toFixed(1)} ms, ${longestBytes} bytes`,
  )
  assert.ok(longestBytes <= STEP_BYTES_MAX, `${longestBytes} bytes`)
  // Copying, reading and delivering are steps of their own.
  assert.ok(steps >= (2 * (block.dataSets[0]?.bytes.length ?? 0)) / STEP_BYTES_MAX)

  const own = parts().filter(({ slot }) => slot === 10)
  const { transactions, batches } = contentOf(own)
  const [made] = block.dataSets
  assert.ok(made)
  assert.equal(Buffer.compare(entriesOf(batches), made.bytes.subarray(8)), 0)
  const decoded = decodeBatch(made.bytes)
  assert.ok(decoded.ok && decoded.kind === 'entries')
  assert.deepEqual(
    transactions,
    decoded.entries.flatMap((entry) => entry.transactions.map(({ signatures }) => hexOf(signatures[0]))),
  )
  for (const batch of batches) assert.ok(decodeBatch(batch).ok)
  assert.equal(new Set(own.map(({ startIndex, endIndex }) => `${startIndex}-${endIndex}`)).size, 1)
  assert.equal(engine.heldSets, 0)
  engine.end()
  assert.deepEqual([engine.counts.dataSets, engine.counts.slots.complete], [2, 2])
})

test('an entry that is longer than a part is cut between its transactions, and joins to the same bytes', () => {
  const made = blockOf(10, 700_000).dataSets[0]
  assert.ok(made)
  const hash = new Uint8Array(32).fill(3)
  const bytes = encodeEntries([
    { numHashes: 1n, hash, transactions: made.transactions.slice(0, 5) },
    { numHashes: 2n, hash, transactions: made.transactions.slice(5) },
    { numHashes: 3n, hash, transactions: [] },
  ])
  const { push, engine, parts, events } = open()
  push(packetsOf(bytes))
  engine.end()
  const { batches, transactions } = contentOf(parts())
  assert.deepEqual([batches.length, parts().length > 4, transactions.length], [2, true, made.transactions.length])
  assert.equal(Buffer.compare(entriesOf(batches), bytes.subarray(8)), 0)
  assert.deepEqual(
    batches.map((batch) => new DataView(batch.buffer, batch.byteOffset).getBigUint64(0, true)),
    [2n, 1n],
  )
  assert.equal(events.filter(({ kind }) => kind === 'slot-completed').length, 1)
})

test('of a large data set that is not valid to its end nothing is delivered', () => {
  const made = blockOf(10, 400_000).dataSets[0]
  assert.ok(made)
  const moreEntries = Uint8Array.from(made.bytes)
  moreEntries[0] = (moreEntries[0] as number) + 1
  const marker = new Uint8Array(400_000)
  for (const bytes of [moreEntries, marker, made.bytes.subarray(0, -1)]) {
    const { push, engine, parts, events } = open()
    push(packetsOf(bytes))
    engine.end()
    assert.deepEqual([parts().length, engine.counts.dataSetsUndecodable, engine.heldSets], [0, 1, 0])
    assert.deepEqual(
      events.map((event) => [event.kind, event.kind === 'gap' && event.reason]),
      [
        ['gap', 'undecodable'],
        ['slot-report', false],
      ],
    )
  }
})

test('what follows the last entry of a data set is left out, and the slot is complete', () => {
  for (const bytes of [500, 400_000]) {
    const [made] = blockOf(10, bytes).dataSets
    assert.ok(made !== undefined)
    const { push, engine, parts } = open()
    push(packetsOf(Buffer.concat([made.bytes, Buffer.of(1, 2, 3)])))
    engine.end()
    const { batches, transactions } = contentOf(parts())
    assert.equal(Buffer.compare(entriesOf(batches), made.bytes.subarray(8)), 0, `${bytes} bytes`)
    assert.equal(transactions.length, made.transactions.length)
    const last = parts().map(({ part }) => part?.isLast ?? true)
    assert.deepEqual([last.at(-1), last.filter(Boolean).length], [true, 1])
    assert.deepEqual([engine.counts.dataSets, engine.counts.slots.complete], [1, 1])
  }
})

test('a slot with a large data set that is not valid is not complete, though all others are delivered behind it', () => {
  const [large] = blockOf(10, 400_000).dataSets
  const [small] = blockOf(10, 500).dataSets
  assert.ok(large !== undefined && small !== undefined)
  const { push, engine, parts, events } = open()
  const packets = packetsOf(large.bytes.subarray(0, -1), small.bytes)
  push(packets.slice(0, -1))
  while (engine.work());
  assert.deepEqual([parts().length, engine.counts.dataSetsUndecodable], [0, 1])
  push(packets.slice(-1))
  engine.end()
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['data-set', 'gap', 'slot-report'],
  )
  assert.equal(engine.counts.slots.incomplete, 1)
})

test('a slot that is due stays open until its large data set is delivered, and slots are closed in order', () => {
  const { push, engine, events } = open()
  push(packetsOf(blockOf(10, 400_000).dataSets[0]?.bytes ?? Buffer.of()))
  assert.equal(engine.work(), true)
  for (let slot = 11; slot < 50; slot++) push(blockOf(slot, 500).fecSets.flat())
  const reported = () => events.flatMap((event) => (event.kind === 'slot-report' ? [event.slot] : []))
  assert.deepEqual(reported(), [])
  while (engine.work());
  assert.deepEqual(reported(), [10, 11, 12, 13, 14, 15, 16])
  assert.equal(engine.counts.slots.complete, 7)
})

/** The data shreds of slot 10 with these batches. */
function packetsOf(...batches: readonly Uint8Array[]): Uint8Array[] {
  const { sets } = makeShreds({
    slot: 10,
    parentSlot: 9,
    version: VERSION,
    batches,
    chainedRoot: new Uint8Array(32),
    leader: LEADER,
  })
  return sets.flatMap(({ data }) => data)
}
