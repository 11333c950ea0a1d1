import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { BlockFetch, FetchedBlock } from './block-fetch.ts'
import { type FillResult, fillRange } from './fill.ts'
import type { SlotRange } from './slot-ranges.ts'

type Selects = (slot: number) => boolean
const none: Selects = () => false
const all: Selects = () => true
const OPTIONS = { parallel: 16, blocksMax: 128, endIsFinal: true }

/** Nodes that list these blocks and have them, except the pruned ones. Calls for any node go to the first. */
function openTestNodes({
  lists,
  pruned = none,
  first = 0,
}: {
  lists: readonly Selects[]
  pruned?: Selects
  first?: number
}) {
  const listings: SlotRange[] = []
  const asked = { first: 0 }
  const listed = (range: SlotRange, has: Selects): number[] => {
    listings.push(range)
    return Array.from({ length: range.to - range.from + 1 }, (_, at) => range.from + at).filter(has)
  }
  const fetch: BlockFetch = {
    slotsIn: async (range) => listed(range, lists[0] ?? none),
    slotsOnAnyNode: async (range) => listed(range, (slot) => lists.some((has) => has(slot))),
    async firstOnAnyNode() {
      asked.first += 1
      return first
    },
    refuse: () => {},
    async fetch(slot): Promise<FetchedBlock> {
      if (pruned(slot)) return { kind: 'pruned' }
      if (!lists.some((has) => has(slot))) return { kind: 'none' }
      return { kind: 'block', raw: { slot, source: 'backfill', bytes: new Uint8Array() } }
    },
  }
  return { fetch, listings, asked, slotsListed: () => listings.reduce((sum, { from, to }) => sum + to - from + 1, 0) }
}

async function fill(fetch: BlockFetch, range: SlotRange): Promise<FillResult & { readonly slots: readonly number[] }> {
  const slots: number[] = []
  const result = await fillRange(range, fetch, OPTIONS, ({ slot }) => void slots.push(slot))
  return { ...result, slots }
}

describe('filling a long gap', () => {
  test('lists at most four slots for each block, though it takes many fills', async () => {
    const nodes = openTestNodes({ lists: [all] })
    let from = 1
    for (let fills = 0; from <= 100_000; fills++) {
      const { kind, slots } = await fill(nodes.fetch, { from, to: 100_000 })
      assert.deepEqual([kind, slots[0]], ['done', from])
      assert.ok(fills < 1_000)
      from = (slots.at(-1) ?? 0) + 1
    }
    assert.ok(nodes.slotsListed() <= 4 * 100_000, `${nodes.slotsListed()} slots listed`)
  })

  test('passes a beginning without blocks, in listings of a bounded length', async () => {
    const nodes = openTestNodes({ lists: [(slot) => slot >= 900_000] })
    const { kind, slots } = await fill(nodes.fetch, { from: 1, to: 1_000_000 })
    assert.deepEqual([kind, slots[0], slots.length], ['done', 900_000, 128])
    assert.ok(nodes.listings.length < 40, `${nodes.listings.length} listings`)
    for (const { from, to } of nodes.listings) assert.ok(to - from < 65_536, `${from} to ${to}`)
    assert.equal(nodes.asked.first, 1, 'the nodes are asked for their first block once')
  })

  test('goes on at the first block that any node has, and does not pass over one before it', async () => {
    const range = { from: 1, to: 50_000_000 }
    const nodes = openTestNodes({ lists: [(slot) => slot >= 40_000_000], first: 40_000_000 })
    const { kind, slots } = await fill(nodes.fetch, range)
    assert.deepEqual([kind, slots[0], slots.length, nodes.listings.length], ['done', 40_000_000, 128, 2])

    const gone = openTestNodes({ lists: [none], first: 60_000_000 })
    assert.deepEqual(await fill(gone.fetch, range), { kind: 'unavailable', slots: [] })
    assert.equal(gone.listings.length, 4, 'by one node, then by all')

    const early = openTestNodes({ lists: [(slot) => slot === 600 || slot > 900], first: 100 })
    assert.deepEqual((await fill(early.fetch, { from: 1, to: 100_000 })).slots[0], 600)
  })

  test('continues after listed blocks that every node pruned', async () => {
    const nodes = openTestNodes({ lists: [all], pruned: (slot) => slot < 5_000 })
    const { kind, slots } = await fill(nodes.fetch, { from: 1, to: 50_000 })
    assert.equal(kind, 'done')
    assert.ok((slots[0] ?? 0) >= 5_000)
  })

  test('takes the blocks that only another node has', async () => {
    const nodes = openTestNodes({ lists: [(slot) => slot === 50_000, (slot) => slot >= 20_000] })
    const { kind, slots } = await fill(nodes.fetch, { from: 1, to: 50_000 })
    assert.deepEqual([kind, slots[0], slots.length], ['done', 20_000, 128])
  })

  test('is over when no node lists or has any block up to its end, and not before', async () => {
    const nodes = openTestNodes({ lists: [none, none] })
    assert.deepEqual(await fill(nodes.fetch, { from: 1, to: 50_000 }), { kind: 'unavailable', slots: [] })
    for (const list of ['slotsIn', 'slotsOnAnyNode'] as const) {
      const original = nodes.fetch[list]
      const failing = {
        ...nodes.fetch,
        [list]: async (range: SlotRange) => (range.from > 1 ? undefined : original(range)),
      }
      assert.equal((await fill(failing, { from: 1, to: 50_000 })).kind, 'later', list)
    }
  })
})

test('the end of a gap is fetched though no node lists it', async () => {
  const { fetch } = openTestNodes({ lists: [(slot) => slot === 40] })
  const unlisted: BlockFetch = { ...fetch, slotsIn: async () => [], slotsOnAnyNode: async () => [] }
  assert.deepEqual(await fill(unlisted, { from: 1, to: 40 }), { kind: 'done', slots: [40] })
})
