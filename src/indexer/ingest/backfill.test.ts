import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { openTestBackfill } from './test-backfill.ts'

const between = (from: number, to: number) => (slot: number) => slot >= from && slot <= to
const all = () => true
const none = () => false

describe('backfill', () => {
  test('blocks that no node lists at the start of the range are not covered, and stored rows stay', async () => {
    const on = openTestBackfill({
      from: 1000,
      to: 1040,
      nodes: [between(1010, 2000)],
      stored: [{ from: 990, to: 1005 }],
    })
    const { state, nextSlot, message } = await on.end()
    assert.deepEqual({ state, nextSlot }, { state: 'failed', nextSlot: 1000 })
    assert.match(message ?? '', /1000 to 1009/)
    assert.deepEqual(on.ranges(), [{ from: 990, to: 1005 }])
    assert.ok(on.rows.has(1000))
  })

  test('one missing block at the start is noticed', async () => {
    const on = openTestBackfill({ from: 1000, to: 1040, nodes: [between(1001, 2000)] })
    assert.match((await on.end()).message ?? '', /1000 to 1000/)
    assert.deepEqual(on.ranges(), [])
  })

  test('slots that were skipped before the first block are covered', async () => {
    const on = openTestBackfill({ from: 1000, to: 1010, nodes: [all], skipped: between(995, 1003) })
    assert.deepEqual((await on.end()).state, 'done')
    assert.deepEqual(on.ranges(), [{ from: 995, to: 1010 }])
  })

  test('the first block of a chain has no parent', async () => {
    const on = openTestBackfill({ from: 0, to: 3, nodes: [all] })
    assert.deepEqual((await on.end()).state, 'done')
    assert.deepEqual(on.ranges(), [{ from: 0, to: 3 }])
  })

  test('a stretch of skipped slots that is longer than a piece leaves no gap', async () => {
    const on = openTestBackfill({ from: 1000, to: 1300, nodes: [all], skipped: between(1032, 1200) })
    assert.deepEqual((await on.end()).state, 'done')
    assert.deepEqual(on.ranges(), [{ from: 1000, to: 1300 }])
  })

  test('blocks that one of two nodes has pruned come from the other one', async () => {
    const on = openTestBackfill({ from: 1000, to: 1319, nodes: [none, all] })
    const { state, blocks, nextSlot } = await on.end()
    assert.deepEqual({ state, blocks, nextSlot }, { state: 'done', blocks: 320, nextSlot: 1320 })
    assert.deepEqual(on.ranges(), [{ from: 1000, to: 1319 }])
  })

  test('a node that lacks blocks inside a piece is completed by the other one', async () => {
    const lacks = between(1005, 1044)
    const on = openTestBackfill({ from: 1000, to: 1063, nodes: [(slot) => !lacks(slot), all] })
    assert.deepEqual((await on.end()).state, 'done')
    assert.deepEqual(on.ranges(), [{ from: 1000, to: 1063 }])
    assert.equal(on.decoded.size, 0)
  })

  test('missing blocks at the end of the range fail it: a later block does not follow the last one', async () => {
    const lost = between(1021, 1050)
    const on = openTestBackfill({ from: 1000, to: 1040, nodes: [(slot) => !lost(slot)] })
    const { state, nextSlot, message } = await on.end()
    assert.deepEqual({ state, nextSlot }, { state: 'failed', nextSlot: 1021 })
    assert.match(message ?? '', /1021 to 1050/)
    assert.deepEqual(on.ranges(), [{ from: 1000, to: 1020 }])
    assert.equal(on.decoded.size, 0)
  })

  test('skipped slots at the end of the range are proven by the block after them', async () => {
    const on = openTestBackfill({ from: 1000, to: 1040, nodes: [all], skipped: between(1021, 1120) })
    const { state, nextSlot, blocks } = await on.end()
    assert.deepEqual({ state, nextSlot, blocks }, { state: 'done', nextSlot: 1041, blocks: 21 })
    assert.equal(on.decoded.size, 0)
  })

  test('a range that every node has pruned fails, however far the next block is', async () => {
    const on = openTestBackfill({ from: 1000, to: 1040, nodes: [between(90_000, 99_999)] })
    const { state, message } = await on.end()
    assert.equal(state, 'failed')
    assert.match(message ?? '', /1000 to 89999/)
    assert.deepEqual(on.ranges(), [])
  })

  test('slots that are not final yet are waited for, and reported when they do not come', async () => {
    const on = openTestBackfill({ from: 1000, to: 1040, nodes: [between(0, 1030)] })
    const { state, nextSlot, message } = await on.end()
    assert.deepEqual({ state, nextSlot }, { state: 'failed', nextSlot: 1031 })
    assert.match(message ?? '', /after slot 1030/)
  })

  test('the blocks of a failed piece leave the memory of the database process', async () => {
    const on = openTestBackfill({ from: 1000, to: 1040, nodes: [all], unavailable: (slot) => slot === 1030 })
    const { state, nextSlot } = await on.end()
    assert.deepEqual({ state, nextSlot }, { state: 'failed', nextSlot: 1000 })
    assert.ok(on.decodes() > 100)
    assert.equal(on.decoded.size, 0)
  })

  test('a malformed block is fetched again, and the blocks after it are written', async () => {
    const malformed = (slot: number, refusals: number) => slot === 1040 && refusals < 2
    const on = openTestBackfill({ from: 1000, to: 1100, nodes: [all], malformed })
    const { state, blocks, message } = await on.end()
    assert.deepEqual({ state, blocks, message }, { state: 'done', blocks: 101, message: undefined })
    assert.equal(on.decoded.size, 0)
  })

  test('a block that is malformed on every node ends the backfill with its slot, and a later one goes on there', async () => {
    const range = { from: 1000, to: 1100, nodes: [all] }
    const first = openTestBackfill({ ...range, malformed: (slot) => slot === 1040 })
    const { state, nextSlot, message } = await first.end()
    assert.deepEqual({ state, nextSlot }, { state: 'failed', nextSlot: 1032 })
    assert.equal(message, 'block 1040 cannot be decoded: blockhash is no text')
    assert.deepEqual(first.ranges(), [{ from: 1000, to: 1031 }])
    assert.equal(first.decoded.size, 0)
    const second = openTestBackfill({ ...range, from: nextSlot, stored: first.ranges() })
    assert.equal((await second.end()).state, 'done')
    assert.deepEqual(second.ranges(), [{ from: 1000, to: 1100 }])
  })

  test('a write that fails releases its blocks, and a later one succeeds', async () => {
    const on = openTestBackfill({ from: 1000, to: 1040, nodes: [all], failedWrites: 3 })
    assert.equal((await on.end()).state, 'done')
    assert.equal(on.decoded.size, 0)
    assert.deepEqual(on.ranges(), [{ from: 1000, to: 1040 }])
  })

  test('one that fails states whether the nodes or the database were the cause', async () => {
    const full = openTestBackfill({ from: 1000, to: 1040, nodes: [all], failedWrites: 100 })
    const { state, message, failedBy } = await full.end()
    assert.deepEqual({ state, message, failedBy }, { state: 'failed', message: 'no space', failedBy: 'database' })
    const pruned = openTestBackfill({ from: 1000, to: 1040, nodes: [none] })
    assert.equal((await pruned.end()).failedBy, 'nodes')
    const done = openTestBackfill({ from: 1000, to: 1040, nodes: [all], failedWrites: 3 })
    assert.equal((await done.end()).failedBy, undefined)
  })

  test('whatever the nodes have kept: covered slots have their rows, and a complete backfill has all of them', async (t) => {
    const holes = fc.array(fc.tuple(fc.integer({ min: 0, max: 150 }), fc.integer({ min: 0, max: 60 })), {
      maxLength: 3,
    })
    const cases: { skipped: [number, number][]; lost: [number, number][][] }[] = []
    checkProperty(
      t,
      fc.property(fc.record({ skipped: holes, lost: fc.array(holes, { minLength: 1, maxLength: 3 }) }), (one) => {
        cases.push(one)
      }),
      40,
      1000,
    )
    const inSome = (list: [number, number][]) => (slot: number) =>
      list.some(([from, length]) => slot >= 1000 + from && slot < 1000 + from + length)
    for (const { skipped, lost } of cases) {
      const nodes = lost.map((each) => (slot: number) => !inSome(each)(slot))
      const isSkipped = inSome(skipped)
      const on = openTestBackfill({ from: 1000, to: 1150, nodes, skipped: isSkipped })
      const { state, nextSlot } = await on.end()
      const shown = JSON.stringify({ skipped, lost })
      for (const { from, to } of on.ranges())
        for (let slot = from; slot <= to; slot++) assert.ok(isSkipped(slot) || on.rows.has(slot), `${slot} of ${shown}`)
      for (let slot = 1000; slot < Math.min(nextSlot, 1151); slot++)
        assert.ok(isSkipped(slot) || on.rows.has(slot), `${slot} below the next slot of ${shown}`)
      const isKept = (slot: number) => isSkipped(slot) || nodes.some((has) => has(slot))
      const areKept = Array.from({ length: 400 }, (_, at) => at + 900).every(isKept)
      if (areKept) assert.equal(state, 'done', shown)
      assert.equal(on.decoded.size, 0, shown)
    }
  })
})
