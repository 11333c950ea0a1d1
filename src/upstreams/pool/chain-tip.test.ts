import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createChainTip } from './chain-tip.ts'

type Slots = { slot: number; shredSlot: number }

/** Nodes of a chain of 400 ms slots; `lead` is how far each is ahead of it. */
function chainOf(...leads: number[]) {
  const tip = createChainTip({ leadMsMax: 10_000, slotMs: () => 400 })
  const nodes = leads.map(() => ({ health: { slot: 0, shredSlot: 0 } as Slots }))
  let nowMs = 0
  let chain = 100_000
  return {
    tip,
    nodes,
    leads,
    get lead() {
      return tip.slot - chain
    },
    /** The nodes report one after another, as often as there are slots. */
    run(seconds: number, still: readonly number[] = []) {
      for (let at = 0; at < seconds * 2.5; at++) {
        nowMs += 400
        chain += 1
        for (const [index, { health }] of nodes.entries()) {
          const lead = leads[index] as number
          if (!Number.isNaN(lead) && !still.includes(index)) health.slot = chain + lead
          tip.assess(nodes as never, nowMs)
        }
      }
    },
    ahead: () => nodes.map((node) => tip.isAhead(node as never)),
  }
}

test('is the newest slot of nodes that differ by little', () => {
  const on = chainOf(0, 3, -20)
  on.run(1)
  assert.deepEqual([on.lead, on.ahead()], [3, [false, false, false]])
  on.run(60)
  assert.equal(on.lead, 3)
})

test('one of three nodes that is far ahead from the start, moving or not, is not believed', () => {
  for (const still of [[], [0]]) {
    const on = chainOf(1e9, 0, 1)
    on.run(1)
    on.run(600, still)
    assert.deepEqual([on.lead, on.ahead()], [1, [true, false, false]])
  }
})

test('a node that jumps ahead later is not believed, and is again when it is back', () => {
  for (const other of [[0], [0, 0]]) {
    const on = chainOf(0, ...other)
    on.run(20)
    on.leads[0] = 1e9
    on.run(600)
    assert.deepEqual([on.lead, on.ahead()[0]], [0, true])
    on.leads[0] = 2
    on.run(1)
    assert.deepEqual([on.lead, on.ahead()[0]], [2, false])
  }
})

test('of two nodes at the start, one that stands still far ahead is believed for half a minute at most', () => {
  const on = chainOf(1e9, 0)
  on.run(1)
  assert.equal(on.lead, 1e9)
  on.run(31, [0])
  assert.deepEqual([on.lead, on.ahead()], [0, [true, false]])
})

test('of two nodes at the start the one ahead counts, and one that lags may come later', () => {
  const on = chainOf(0, -9000)
  on.run(60)
  assert.deepEqual([on.lead, on.ahead()], [0, [false, false]])
})

test('a node that is added to nodes that lag is believed by their shreds, or after as long as its lead', () => {
  const on = chainOf(-500, Number.NaN)
  on.run(60)
  on.leads[1] = 0
  on.run(190)
  assert.deepEqual([on.lead, on.ahead()], [-500, [false, true]])
  on.run(20)
  assert.deepEqual([on.lead, on.ahead()], [0, [false, false]])

  const shreds = chainOf(-500, Number.NaN)
  shreds.run(60)
  shreds.leads[1] = 0
  ;(shreds.nodes[0] as { health: Slots }).health.shredSlot = 110_000
  shreds.run(1)
  assert.deepEqual([shreds.lead, shreds.ahead()], [0, [false, false]])
})

test('follows nodes that all jump, and a chain that begins again', () => {
  const on = chainOf(0, 0)
  on.run(60)
  on.leads.fill(1e6)
  on.run(1)
  assert.equal(on.lead, 1e6)
  on.leads.fill(-99_000)
  on.run(1)
  assert.equal(on.lead, -99_000)
  const alone = chainOf(0)
  alone.run(60)
  alone.leads[0] = 1e6
  alone.run(1)
  assert.deepEqual([alone.lead, alone.ahead()], [1e6, [false]])
})

test('after a pause in which nothing came from any node, the chain may be as far as it could come', () => {
  const on = chainOf(0, -30)
  on.run(60)
  on.run(60, [0, 1])
  on.run(0.4)
  assert.deepEqual([on.lead, on.ahead()], [0, [false, false]])
})
