import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type FakeNode, startFakeNode } from '../../test/faults/fake-node.ts'
import { startRig } from '../../test/faults/upstreams-rig.ts'
import { createManualClock, type ManualClock } from '../core/clock.ts'
import { createSlotLength, type SlotLength, type SlotLengthLearner } from './slot-length.ts'

function assertNear(length: SlotLength, ms: number, share = 0.1): void {
  assert.ok(Math.abs(length.ms() - ms) <= ms * share, `${length.ms()} is not within ${share} of ${ms}`)
}

type Source = { slot: number; slotMs: number; dueMs: number }

/** Sources with slots of their own length, for this time. */
function drive(clock: ManualClock, length: SlotLengthLearner, sources: readonly Source[], forMs: number): void {
  for (let passedMs = 0; passedMs < forMs; passedMs += 50) {
    clock.advance(50)
    for (const source of sources) {
      for (; source.dueMs <= clock.monotonicMs(); source.dueMs += source.slotMs) source.slot += 1
      length.observe(source, source.slot)
    }
  }
}
const sourceOf = (slotMs: number, slot = 1000): Source => ({ slot, slotMs, dueMs: 0 })

test('is 400 ms until it is learned, then that of the chain, and reports a change', () => {
  const clock = createManualClock()
  const length = createSlotLength({ clock })
  assert.deepEqual([length.ms(), length.isLearned, length.inSlots(10_000)], [400, false, 25])
  const seen: number[] = []
  using _listening = length.onChange(() => seen.push(length.ms()))
  const node = sourceOf(250)
  drive(clock, length, [node], 20_000)
  assertNear(length, 250, 0.03)
  assert.deepEqual([length.isLearned, length.inSlots(10_000)], [true, Math.ceil(10_000 / length.ms())])
  assert.ok(seen.length >= 1 && seen.length <= 10, `${seen.length} changes`)
})

test('one wrong source among three changes nothing, and of two that differ the one nearer to the known length counts', () => {
  for (const wrongMs of [60, 1900]) {
    const clock = createManualClock()
    const length = createSlotLength({ clock })
    const [right, other, wrong] = [sourceOf(400), sourceOf(400, 990), sourceOf(wrongMs, 5)]
    drive(clock, length, [right, other, wrong], 60_000)
    assertNear(length, 400, 0.03)
    length.forget(other)
    drive(clock, length, [right, wrong], 60_000)
    assertNear(length, 400, 0.03)
  }
})

test('a source without slots for three minutes no longer counts', () => {
  const clock = createManualClock()
  const length = createSlotLength({ clock })
  const [gone, also, here] = [sourceOf(400), sourceOf(400), sourceOf(400)]
  drive(clock, length, [gone, also, here], 60_000)
  here.slotMs = 200
  drive(clock, length, [here], 150_000)
  assertNear(length, 400, 0.03)
  drive(clock, length, [here], 40_000)
  assertNear(length, 200, 0.03)
})

test('what a source reports counts until its slots were observed', () => {
  const clock = createManualClock()
  const length = createSlotLength({ clock })
  const node = sourceOf(200)
  length.report(node, 300)
  assert.deepEqual([length.ms(), length.isLearned], [300, true])
  length.report(node, Number.NaN)
  length.report(node, 1e9)
  assert.equal(length.ms(), 2000, 'bounded')
  drive(clock, length, [node], 20_000)
  assertNear(length, 200, 0.03)
  // The chain pauses: the report of the start is not used again.
  clock.advance(60_000)
  node.dueMs = clock.monotonicMs()
  drive(clock, length, [node], 2000)
  assertNear(length, 200, 0.03)
})

test('another length is the fallback until it is learned', () => {
  const clock = createManualClock()
  const length = createSlotLength({ clock, fallback: { ms: () => 250 } })
  assert.equal(length.ms(), 250)
})

test('holds a limited number of sources', () => {
  const clock = createManualClock()
  const length = createSlotLength({ clock })
  for (let at = 0; at < 256; at++) length.report({}, 300)
  for (let at = 0; at < 300; at++) length.report({}, 200)
  assert.equal(length.ms(), 300)
})

/** The upstreams service over nodes on loopback. Each node notifies its slots over WebSocket, and is probed over HTTP. */
async function startChain(names: readonly string[]) {
  const stack = new AsyncDisposableStack()
  const clock = createManualClock()
  const nodes: FakeNode[] = []
  for (const _ of names) nodes.push(stack.use(await startFakeNode(1000)))
  const rig = stack.use(
    await startRig({ clock, nodes: names.map((name, at) => ({ name, rpc: nodes[at]?.rpc, ws: nodes[at]?.ws })) }),
  )
  const { slotLength } = rig.upstreams.shared
  const dueMs = new Map<FakeNode, number>()
  const stepMs = 100
  return {
    clock,
    nodes,
    rig,
    slotLength,
    /** Lets the time pass, with slots of these lengths; a node without one has none. */
    async pass(forMs: number, slotMsOf: (node: FakeNode) => number | undefined) {
      for (let passedMs = 0; passedMs < forMs; passedMs += stepMs) {
        clock.advance(stepMs)
        for (const node of nodes) {
          const slotMs = slotMsOf(node)
          if (slotMs === undefined) {
            dueMs.delete(node)
            continue
          }
          const due = dueMs.get(node) ?? clock.monotonicMs()
          if (due <= clock.monotonicMs()) {
            const slots = Math.floor((clock.monotonicMs() - due) / slotMs) + 1
            dueMs.set(node, due + slots * slotMs)
            node.tick(slots)
          } else dueMs.set(node, due)
        }
        await pause(1)
      }
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('slots of a running chain that shrink from 400 to 200 ms are taken in within a minute, at three nodes of which one is wrong', async () => {
  await using chain = await startChain(['a', 'b', 'wrong'])
  const [, , wrong] = chain.nodes
  await chain.pass(20_000, (node) => (node === wrong ? 130 : 400))
  assertNear(chain.slotLength, 400)
  assert.equal(chain.slotLength.isLearned, true)
  await chain.pass(60_000, (node) => (node === wrong ? 130 : 200))
  assertNear(chain.slotLength, 200)
  assert.match(await chain.rig.registry.text(), /^sluice_slot_length_seconds 0\.(19|2)/m)
})

test('a pause of the chain, a node that is away and a node that was restarted do not change the length', async () => {
  await using chain = await startChain(['a', 'b'])
  const [a, b] = chain.nodes as [FakeNode, FakeNode]
  await chain.pass(15_000, () => 300)
  assertNear(chain.slotLength, 300)
  await chain.pass(60_000, () => undefined)
  assertNear(chain.slotLength, 300)
  await chain.pass(15_000, () => 300)
  assertNear(chain.slotLength, 300)
  // b is away for 20 s, then it starts from an old snapshot and catches up at four times the speed.
  await chain.pass(20_000, (node) => (node === b ? undefined : 300))
  b.slot = a.slot - 600
  b.shredSlot = a.slot
  await chain.pass(20_000, (node) => (node === b ? 75 : 300))
  assertNear(chain.slotLength, 300)
})

test('a node that has shreds beyond its own slots catches up, and its slots show no length', async () => {
  await using chain = await startChain(['only'])
  const [node] = chain.nodes as [FakeNode]
  await chain.pass(15_000, () => 300)
  assertNear(chain.slotLength, 300)
  node.shredSlot = node.slot
  node.slot -= 900
  await chain.pass(40_000, () => 100)
  assertNear(chain.slotLength, 300)
})

test('the statistics of a node give the length before its slots were observed', async () => {
  const clock = createManualClock()
  await using node = await startFakeNode()
  node.samples = '[{"slot":1000,"numSlots":240,"numTransactions":9,"samplePeriodSecs":60,"numNonVoteTransactions":3}]'
  await using rig = await startRig({ clock, nodes: [{ name: 'a', rpc: node.rpc }] })
  const { slotLength } = rig.upstreams.shared
  for (let waits = 0; waits < 500 && !slotLength.isLearned; waits++) await pause(5)
  assert.equal(slotLength.ms(), 250)
  for (let at = 0; at < 50; at++) {
    clock.advance(1000)
    await pause(1)
  }
  const asked = node.requests.filter(({ method }) => method === 'getRecentPerformanceSamples')
  assert.equal(asked.length, 1, 'once')
})
