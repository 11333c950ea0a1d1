import assert from 'node:assert/strict'
import { test } from 'node:test'
import { account, address, createChainDouble } from '../../../test/support/solana/chain-double.ts'
import type { Block } from '../chain/model.ts'
import { SlotLog } from './slot-log.ts'

function start(slotsMax: number) {
  const double = createChainDouble()
  const forgotten = new Set<number>()
  let reads = 0
  const log = new SlotLog(
    { slotsMax },
    {
      nowMs: () => 0,
      block(slot): Block | undefined {
        reads++
        return forgotten.has(slot) ? undefined : double.chain.block(slot)
      },
    },
  )
  double.chain.subscribe((event) => log.append(event))
  return { ...double, log, forgotten, reads: () => reads }
}

test('keeps slotsMax slots and finds the first record of each', () => {
  const { log, produce } = start(10)
  for (let i = 0; i < 50; i++) produce()
  assert.equal(log.firstSlot(), 50)
  assert.equal(log.slotAt(log.positionOf(55)), 55)
  assert.equal(log.slotAt(log.positionOf(0)), 50)
  assert.equal(log.positionOf(1000), log.end)
  assert.ok(log.end - log.first <= 4 * 11)
  assert.equal(log.ageOf(log.first), 10)
  assert.equal(log.ageOf(log.end), 0)
})

test('encodes recent blocks once for all streams and older ones for each stream', () => {
  const { log, produce, transaction, reads } = start(100)
  const writes = [[address('a'), account()]] as const
  for (let i = 0; i < 20; i++) produce({ transactions: [transaction({ writes })] })
  const frozen = (slot: number) => {
    let position = log.positionOf(slot)
    while (log.updatesAt(position, 'processed')?.at(-1)?.kind !== 'slot' || log.slotAt(position) !== slot) position++
    // The next record of a slot after its opening is the one that freezes it.
    for (position++; log.slotAt(position) !== slot; position++);
    return position
  }
  const recent = frozen(29)
  const before = reads()
  const first = log.updatesAt(recent, 'processed')
  const second = log.updatesAt(recent, 'processed')
  assert.equal(reads(), before + 1)
  assert.equal(first?.[0], second?.[0])
  const old = frozen(12)
  const again = reads()
  assert.notEqual(log.updatesAt(old, 'processed')?.[0], log.updatesAt(old, 'processed')?.[0])
  assert.equal(reads(), again + 2)
})

test('a block evicted from the ledger has no updates, but its slot statuses are still sent', () => {
  const { log, produce, forgotten } = start(100)
  for (let i = 0; i < 20; i++) produce()
  forgotten.add(15)
  const outcomes = new Set<string>()
  for (let position = log.first; position < log.end; position++) {
    if (log.slotAt(position) !== 15) continue
    const updates = log.updatesAt(position, 'confirmed')
    outcomes.add(updates === undefined ? 'gone' : updates.map((update) => update.kind).join())
  }
  assert.deepEqual([...outcomes], ['slot,slot', 'gone', 'slot'])
})
