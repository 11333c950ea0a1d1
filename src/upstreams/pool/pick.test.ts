import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../../core/test-seed.ts'
import { type Candidate, pick } from './pick.ts'

type Node = Candidate & { name: string }
const node = (name: string, more: Partial<Candidate> = {}): Node => ({
  name,
  isAvailable: true,
  isUnresponsive: false,
  isLagging: false,
  isSuspect: false,
  slot: 1000,
  load: 0,
  ...more,
})
const nameOf = (nodes: Node[], minSlot = 0, offset = 0) => pick(nodes, { minSlot, offset })?.name

test('picks the least loaded node in rotation, and alternates between equal ones', () => {
  const nodes = [node('a', { load: 3 }), node('b', { load: 1 }), node('c', { load: 2 })]
  assert.equal(nameOf(nodes), 'b')
  const equal = [node('a'), node('b'), node('c')]
  assert.deepEqual(
    [0, 1, 2, 3].map((offset) => nameOf(equal, 0, offset)),
    ['a', 'b', 'c', 'a'],
  )
})

test('picks a lagging node only when all lag, and an unavailable one never', () => {
  assert.equal(nameOf([node('a', { isLagging: true, slot: 900 }), node('b', { load: 99 })]), 'b')
  assert.equal(
    nameOf([node('a', { isLagging: true, slot: 900, load: 1 }), node('b', { isLagging: true, slot: 890 })]),
    'b',
  )
  assert.equal(nameOf([node('a', { isAvailable: false }), node('b', { isLagging: true, slot: 1 })]), 'b')
  assert.equal(nameOf([node('a', { isAvailable: false })]), undefined)
  assert.equal(nameOf([]), undefined)
})

test("picks a node at the client's slot or above, else the newest", () => {
  const nodes = [node('idle', { slot: 999 }), node('busy', { slot: 1001, load: 50 })]
  assert.equal(nameOf(nodes, 1000), 'busy')
  assert.equal(nameOf(nodes, 999), 'idle')
  assert.equal(nameOf(nodes, 2000), 'busy', 'the newest of those that are behind')
  assert.equal(nameOf([node('a', { slot: 1000 }), node('b', { slot: 2000, isLagging: true })], 1500), 'b')
  assert.equal(nameOf([node('unknown', { slot: 0 }), node('known', { slot: 10 })], 5), 'known')
})

const candidates = fc.array(
  fc.record({
    name: fc.string(),
    isAvailable: fc.boolean(),
    isUnresponsive: fc.boolean(),
    isLagging: fc.boolean(),
    isSuspect: fc.boolean(),
    slot: fc.integer({ min: 0, max: 20 }),
    load: fc.integer({ min: 0, max: 5 }),
  }),
  { maxLength: 8 },
)

test('property: every pick follows the rules', () => {
  fc.assert(
    fc.property(candidates, fc.integer({ min: 0, max: 20 }), fc.nat(100), (nodes, minSlot, offset) => {
      const chosen = pick(nodes, { minSlot, offset })
      const inPool = nodes.filter(({ isAvailable }) => isAvailable)
      if (inPool.length === 0) return assert.equal(chosen, undefined)
      assert.ok(chosen?.isAvailable)
      const responding = inPool.filter(({ isUnresponsive }) => !isUnresponsive)
      const available = responding.length > 0 ? responding : inPool
      const forward = available.filter(({ slot }) => slot >= minSlot)
      const atSlot = forward.length > 0 ? forward : available
      const inRotation = atSlot.filter(({ isLagging }) => !isLagging)
      const lagEqually = inRotation.length > 0 ? inRotation : atSlot
      const unsuspected = lagEqually.filter(({ isSuspect }) => !isSuspect)
      const rivals = unsuspected.length > 0 ? unsuspected : lagEqually
      assert.ok(rivals.includes(chosen))
      if (forward.length > 0) assert.equal(chosen.load, Math.min(...rivals.map(({ load }) => load)))
      else assert.equal(chosen.slot, Math.max(...rivals.map(({ slot }) => slot)))
    }),
    seedFor('pick', 2000),
  )
})

test('property: equal nodes get equal load', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), (count) => {
      const loads = Array.from({ length: count }, () => 0)
      const nodes = loads.map((_, at) => ({
        ...node(String(at)),
        get load() {
          return loads[at] as number
        },
      }))
      for (let offset = 0; offset < count * 10; offset++) {
        const at = Number(pick(nodes, { minSlot: 0, offset })?.name)
        loads[at] = (loads[at] as number) + 1
      }
      assert.deepEqual(new Set(loads), new Set([10]))
    }),
    seedFor('pick, equal work', 20),
  )
})
