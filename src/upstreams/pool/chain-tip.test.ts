import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createChainTip } from './chain-tip.ts'

type Slots = { slot: number; shredSlot: number }

/** Nodes of a chain of 400 ms slots; `lead` is how far each is ahead of it. */
function chainOf(...leads: number[]) {
  const tip = createChainTip({ slotMs: () => 400 })
  const nodes = leads.map(() => ({ health: { slot: 0, shredSlot: 0 } as Slots }))
  let nowMs = 0
  let chain = 400_000
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

test('a node that is ahead of nodes that lag by hours counts at once, when it is added, is back, or alone was not restored', () => {
  const added = chainOf(-500, -9000, Number.NaN)
  added.run(60)
  added.leads[2] = 0
  added.run(1)
  assert.deepEqual([added.lead, added.ahead()], [0, [false, false, false]])

  const back = chainOf(0, -500)
  back.run(60)
  back.run(120, [0])
  assert.equal(back.lead, -500)
  back.run(1)
  assert.deepEqual([back.lead, back.ahead()], [0, [false, false]])

  const restored = chainOf(0, -90_000, -90_000)
  restored.run(1)
  assert.deepEqual([restored.lead, restored.ahead()], [0, [false, false, false]])
})

test('a lead of more than a day is believed by the shreds of another node', () => {
  const shreds = chainOf(-300_000, Number.NaN)
  shreds.run(60)
  shreds.leads[1] = 0
  shreds.run(1)
  assert.deepEqual([shreds.lead, shreds.ahead()], [-300_000, [false, true]])
  ;(shreds.nodes[0] as { health: Slots }).health.shredSlot = 400_000
  shreds.run(1)
  assert.deepEqual([shreds.lead, shreds.ahead()], [0, [false, false]])
})

test('follows nodes that all jump, and a chain that begins again', () => {
  const on = chainOf(0, 0)
  on.run(60)
  on.leads.fill(1e6)
  on.run(1)
  assert.equal(on.lead, 1e6)
  on.leads.fill(-399_000)
  on.run(1)
  assert.equal(on.lead, -399_000)
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
