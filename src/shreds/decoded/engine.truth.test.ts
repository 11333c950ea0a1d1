import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { createRandom, isFull, seedsOf } from '../../../test/support/process/property.ts'
import { type MadeBlock, type MadeSet, makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { encodeBlockMarker } from '../../solana/shred/block-marker.ts'
import { Engine } from './engine.ts'
import type { DataSet, DecodedEvent, Gap, MarkerSet, SlotReport } from './events.ts'

const SEEDS = { short: 40, full: 1000 }
const LOSSES = [0, 5, 15, 30]
const OPTIONS = { slotsMax: 64, slotsBehindMax: 32, bytesMax: 64 * 1024 * 1024, shredsPerSlotMax: 32_768 }

type Below = (below: number) => number
type Received = { readonly block: MadeBlock; readonly positions: readonly Set<number>[] }

test(`every transaction of every recoverable data set comes once, byte for byte, and all else is reported as lost: ${isFull ? SEEDS.full : SEEDS.short} seeds, or those of SLUICE_SEEDS`, (t) => {
  const totals = { seeds: 0, delivered: 0, recovered: 0, lost: 0, void: 0, missingSlots: 0 }
  for (const seed of seedsOf(t, SEEDS)) {
    const random = createRandom(seed)
    const blocks = makeBlocks(random)
    const loss = LOSSES[seed % LOSSES.length] as number
    const { packets, received } = transmit(blocks, loss, random)
    const isVerified = random(4) !== 0
    const events: DecodedEvent[] = []
    const engine = new Engine(OPTIONS, (event) => events.push(event))
    for (const [arrival, packet] of packets.entries()) engine.push(packet, 0, packet.length, arrival, isVerified)
    engine.end()
    try {
      check(received, events, totals, isVerified)
      totals.seeds += 1
      assert.equal(engine.heldSets, 0)
    } catch (error) {
      throw new Error(`seed ${seed}, loss ${loss} %`, { cause: error })
    }
  }
  t.diagnostic(JSON.stringify(totals))
  assert.ok(totals.delivered > 0 && totals.recovered > 0 && totals.lost > 0, JSON.stringify(totals))
  assert.ok(!isFull || totals.void > 0)
})

function makeBlocks(random: Below): MadeBlock[] {
  let parentSlot = 1000 + random(1000)
  let chainedRoot = new Uint8Array(32)
  return Array.from({ length: 2 + random(3) }, () => {
    const slot = parentSlot + 1 + random(2)
    const batchBytes = Array.from(
      { length: 1 + random(4) },
      () => [0, 500, 20_000, 40_000, 70_000][random(5)] as number,
    )
    const parentUpdate = { variant: 'update-parent', parentSlot, parentBlockId: new Uint8Array(32) } as const
    const marker = random(2) === 0 ? encodeBlockMarker(parentUpdate) : undefined
    const block = makeBlock({ slot, parentSlot, chainedRoot, batchBytes, marker }, random)
    parentSlot = slot
    chainedRoot = Uint8Array.from(block.lastRoot)
    return block
  })
}

/** Loses, repeats and reorders packets. Some FEC sets lose so many that they cannot be recovered, and some slots all of them. */
function transmit(blocks: readonly MadeBlock[], loss: number, random: Below) {
  const sent: { order: number; packet: Uint8Array }[] = []
  const spread = [1, 40, 1000][random(3)] as number
  const received = blocks.map((block): Received => {
    const isLostSlot = loss > 0 && random(12) === 0
    const positions = block.fecSets.map((fecSet) => {
      const setLoss = isLostSlot ? 100 : loss > 0 && random(8) === 0 ? 40 + random(30) : loss
      const arrived = new Set<number>()
      for (const [position, packet] of fecSet.entries()) {
        if (random(100) < setLoss) continue
        arrived.add(position)
        for (let copies = random(8) === 0 ? 2 : 1; copies > 0; copies--)
          sent.push({ order: sent.length + random(spread), packet: retransmitted(packet, random) })
      }
      return arrived
    })
    return { block, positions }
  })
  return { packets: sent.sort((a, b) => a.order - b.order).map(({ packet }) => packet), received }
}

/** A repair response has a nonce behind the shred, and the last signature of a resigned shred is the retransmitter's. */
function retransmitted(packet: Uint8Array, random: Below): Uint8Array {
  const copy = Buffer.concat([packet, random(3) === 0 ? Buffer.of(1, 2, 3, 4) : Buffer.alloc(0)])
  const kind = (packet[64] as number) >> 4
  if (kind === 0x7 || kind === 0xb) copy[packet.length - 1 - random(64)] = random(256)
  return copy
}

function check(
  received: readonly Received[],
  events: readonly DecodedEvent[],
  totals: { delivered: number; recovered: number; lost: number; void: number; missingSlots: number },
  isVerified: boolean,
): void {
  let seen = 0
  const arrived = received.filter(({ positions }) => positions.some(({ size }) => size > 0))
  const [first, last] = [arrived[0]?.block.slot ?? 0, arrived.at(-1)?.block.slot ?? 0]
  for (const { block, positions } of received) {
    const own = events.filter(({ slot }) => slot === block.slot)
    const sets = own.filter(
      (event): event is DataSet | MarkerSet => event.kind === 'data-set' || event.kind === 'marker',
    )
    const gaps = own.filter((event): event is Gap => event.kind === 'gap')
    const reports = own.filter((event): event is SlotReport => event.kind === 'slot-report')
    if (positions.every(({ size }) => size === 0)) {
      assert.deepEqual([sets.length, reports.length], [0, 0])
      for (const { reason } of gaps) assert.ok(reason === 'slot-missing' || reason === 'slot-unknown')
      // Before the first slot of which anything arrived nothing is known to be missing, nor behind the last one.
      assert.equal(gaps.length, first < block.slot && block.slot < last ? 1 : 0, `slot ${block.slot}`)
      totals.missingSlots += gaps.length
      continue
    }
    seen += 1
    const isComplete = positions.map((set) => countData(set) === 32 || set.size >= 32)
    const isEndKnown = positions.map((set, i) => isComplete[i] === true || set.has(31))
    const expected = block.dataSets.filter(
      ({ from, to }) => isComplete.slice(from, to).every(Boolean) && (from === 0 || isEndKnown[from - 1] === true),
    )
    const changesParent = ({ isMarker, bytes }: MadeSet) => isMarker && bytes[8] === 1 && bytes[10] === 2
    const voidBelow = Math.max(0, ...expected.filter(changesParent).map(({ from }) => from))
    // What is void was delivered if it was complete before its marker.
    const marker = sets.findIndex(({ startIndex }) => startIndex === voidBelow * 32)
    const wasDelivered = ({ from }: MadeSet) => sets.some(({ startIndex }) => startIndex === from * 32)
    const delivered = expected.filter((set) => set.to > voidBelow || wasDelivered(set))
    assert.ok(
      sets.every(({ endIndex }, at) => endIndex > voidBelow * 32 || at < marker),
      'nothing void after its marker',
    )
    totals.void += expected.length - delivered.length
    const key = (set: { startIndex: number; endIndex: number }) => `${set.startIndex}-${set.endIndex}`
    assert.deepEqual(
      sets.map(key).sort(),
      delivered.map(({ from, to }) => `${from * 32}-${to * 32}`).sort(),
      `data sets of slot ${block.slot}`,
    )
    for (const { from, bytes, transactions, isMarker, to } of delivered) {
      const set = sets.find(({ startIndex }) => startIndex === from * 32) as DataSet | MarkerSet
      assert.equal(set.kind, isMarker ? 'marker' : 'data-set')
      assert.equal(Buffer.compare(set.kind === 'marker' ? set.bytes : set.entriesBytes, bytes), 0)
      if (set.kind === 'marker') {
        assert.equal(set.isParentUpdate, bytes[8] === 1 && bytes[10] === 2)
        continue
      }
      assert.deepEqual([set.isVerified, set.transactions.length], [isVerified, transactions.length])
      for (const [i, { at, wireLength }] of set.transactions.entries())
        assert.equal(Buffer.compare(set.entriesBytes.subarray(at, at + wireLength), transactions[i] as Uint8Array), 0)
      const needed = positions.slice(from, to).some((set) => countData(set) < 32)
      if (needed) assert.equal(set.wasRecovered, true)
      totals.delivered += 1
      if (set.wasRecovered) totals.recovered += 1
    }

    const isValid = block.fecSets.map((_, i) => i < voidBelow || expected.some(({ from, to }) => from <= i && i < to))
    const lastKnown = isEndKnown.at(-1) === true
    const end = lastKnown ? block.fecSets.length : positions.findLastIndex(({ size }) => size > 0) + 1
    const lost = new Set<number>()
    for (const { startIndex, endIndex } of gaps)
      for (let i = startIndex / 32; i < (endIndex === undefined ? end : endIndex / 32); i++) lost.add(i)
    assert.deepEqual(
      [...lost].sort((a, b) => a - b),
      isValid.flatMap((is, i) => (is || i >= end ? [] : [i])),
    )
    assert.equal(gaps.filter(({ endIndex }) => endIndex === undefined).length, lastKnown ? 0 : 1, 'an open end')
    totals.lost += lost.size

    assert.equal(reports.length, 1)
    const [report] = reports as [SlotReport]
    const wires = delivered.flatMap(({ transactions }) => transactions)
    const missing = block.dataSets.filter((set) => set.to > voidBelow && !expected.includes(set)).length
    assert.deepEqual(
      [report.transactions, report.isComplete, report.isConflicting, report.shreds, own.at(-1)?.kind],
      [wires.length, missing === 0, false, positions.reduce((sum, { size }) => sum + size, 0), 'slot-report'],
    )
    const unrecoverable = isComplete.slice(0, end).filter((is) => !is).length
    assert.deepEqual([report.fecSets, report.fecSetsNotRecoverable], [end, unrecoverable])
    const markers = delivered.filter(({ isMarker }) => isMarker)
    assert.deepEqual([report.markers, report.parentUpdates], [markers.length, markers.filter(changesParent).length])
    assert.ok(report.dataSetsLost >= (missing === 0 ? 0 : 1))
    assert.ok(report.dataSetsLost <= missing, 'no more than there were')
  }
  assert.equal(events.filter(({ kind }) => kind === 'slot-report').length, seen)
}

function countData(positions: ReadonlySet<number>): number {
  let count = 0
  for (const position of positions) if (position < 32) count += 1
  return count
}
