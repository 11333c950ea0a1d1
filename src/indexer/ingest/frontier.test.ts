import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { type BlockLink, Frontier } from './frontier.ts'

const link = (slot: number, parentSlot: number, branch = '', parentBranch = branch): BlockLink => ({
  slot,
  blockhash: `${branch}${slot}`,
  parentSlot,
  parentBlockhash: `${parentBranch}${parentSlot}`,
})

/** Runs every step, taking missing blocks from `chain`. Returns what is stored at the end. */
function settle(frontier: Frontier<BlockLink>, chain: readonly BlockLink[], stored: BlockLink[]): BlockLink[] {
  for (let steps = 0; steps < 10_000; steps++) {
    const step = frontier.step()
    if (step.kind === 'wait') return stored
    if (step.kind === 'append') stored.push(step.block)
    else if (step.kind === 'rewind') while ((stored.at(-1)?.slot ?? -1) >= step.fromSlot) stored.pop()
    else {
      const { from, to } = step.range
      const found = chain.filter(({ slot }) => slot >= from && slot <= to)
      if (found.length === 0) assert.fail(`nothing between ${from} and ${to}`)
      for (const block of found) frontier.offer(block)
    }
  }
  return assert.fail('the steps do not end')
}

describe('the frontier', () => {
  test('passes skipped slots only when the parent links prove that they were skipped', () => {
    const frontier = new Frontier<BlockLink>([{ slot: 10, blockhash: '10' }], { heldMax: 10 })
    frontier.offer(link(13, 12))
    assert.deepEqual(frontier.step(), { kind: 'fill', range: { from: 11, to: 12 } })
    frontier.offer(link(12, 10))
    assert.deepEqual(frontier.step(), { kind: 'append', block: link(12, 10) })
    assert.deepEqual(frontier.step(), { kind: 'append', block: link(13, 12) })
    assert.deepEqual(frontier.step(), { kind: 'wait' })
    assert.equal(frontier.head?.slot, 13)
  })

  test('follows the chain to another fork, and rewinds to the common parent', () => {
    const frontier = new Frontier<BlockLink>([], { heldMax: 10 })
    const ours = [link(1, 0), link(2, 1), link(3, 2)]
    const stored = settle(frontier, [], [])
    for (const block of ours) frontier.offer(block)
    settle(frontier, [], stored)
    const theirs = [link(4, 1, 'b', ''), link(5, 4, 'b'), link(6, 5, 'b')]
    frontier.offer(theirs[2] as BlockLink)
    assert.deepEqual(settle(frontier, theirs, stored), [ours[0], ...theirs])
  })

  test('a child of another block in the slot of the head is not a child of the head', () => {
    const recent = [4, 5].map((slot) => ({ slot, blockhash: `${slot}` }))
    const frontier = new Frontier<BlockLink>(recent, { heldMax: 10 })
    frontier.offer(link(6, 5, 'b'))
    assert.deepEqual(frontier.step(), { kind: 'fill', range: { from: 5, to: 5 } })
    frontier.offer(link(5, 4, 'b', ''))
    assert.deepEqual(frontier.step(), { kind: 'rewind', fromSlot: 5, blocks: 1 })
    assert.deepEqual(settle(frontier, [], []), [link(5, 4, 'b', ''), link(6, 5, 'b')])
  })

  test('an old block of an abandoned fork changes nothing', () => {
    const frontier = new Frontier<BlockLink>(
      [
        { slot: 1, blockhash: '1' },
        { slot: 5, blockhash: '5' },
      ],
      { heldMax: 10 },
    )
    frontier.offer(link(3, 1, 'x', ''))
    assert.deepEqual(frontier.step(), { kind: 'wait' })
    assert.equal(frontier.heldCount, 0)
  })

  test('a dead slot is rewound with all slots after it', () => {
    const frontier = new Frontier<BlockLink>(
      [1, 2, 3].map((slot) => ({ slot, blockhash: `${slot}` })),
      { heldMax: 10 },
    )
    assert.deepEqual(frontier.removeDead(9), { kind: 'wait' })
    assert.deepEqual(frontier.removeDead(2), { kind: 'rewind', fromSlot: 2, blocks: 2 })
    assert.equal(frontier.head?.slot, 1)
  })

  test('a dead block no longer proves that the slots before it are empty', () => {
    const recent = [4, 7, 9].map((slot) => ({ slot, blockhash: `${slot}` }))
    const frontier = new Frontier<BlockLink>(recent, { heldMax: 10, firstSlot: 2 })
    assert.deepEqual(frontier.removeDead(9), { kind: 'rewind', fromSlot: 8, blocks: 1 })
    assert.deepEqual(frontier.removeDead(7), { kind: 'rewind', fromSlot: 5, blocks: 1 })
    assert.deepEqual(frontier.removeDead(4), { kind: 'rewind', fromSlot: 2, blocks: 1 })
  })

  test('a dead bank takes only its own block along, and a held one is released', () => {
    const frontier = new Frontier<BlockLink>([{ slot: 1, blockhash: '1' }], { heldMax: 10 })
    assert.deepEqual(frontier.removeDead(1, 'b1'), { kind: 'wait' })
    assert.equal(frontier.head?.slot, 1)
    frontier.offer(link(4, 3))
    frontier.removeDead(4, 'b4')
    assert.equal(frontier.heldCount, 1)
    frontier.removeDead(4, '4')
    assert.deepEqual([frontier.heldCount, frontier.takeReleased()], [0, [link(4, 3)]])
  })

  test('a block that did not become final stays until the one in its place is held', () => {
    const frontier = new Frontier<BlockLink>(
      [4, 5, 6].map((slot) => ({ slot, blockhash: `${slot}` })),
      { heldMax: 10 },
    )
    frontier.reject(5, 'b5')
    assert.deepEqual(frontier.step(), { kind: 'wait' }, 'another block than ours')
    frontier.reject(5, '5')
    assert.deepEqual(frontier.step(), { kind: 'fill', range: { from: 5, to: 5 } })
    assert.equal(frontier.head?.slot, 6)
    frontier.offer(link(5, 4, 'b', ''))
    assert.deepEqual(frontier.step(), { kind: 'rewind', fromSlot: 5, blocks: 2 })
    assert.deepEqual(frontier.step(), { kind: 'append', block: link(5, 4, 'b', '') })
    assert.deepEqual(frontier.step(), { kind: 'wait' })
  })

  test('a block in its place with another parent is linked down to the common ancestor', () => {
    const frontier = new Frontier<BlockLink>(
      [3, 4, 5].map((slot) => ({ slot, blockhash: `${slot}` })),
      { heldMax: 10 },
    )
    frontier.reject(5, '5')
    frontier.offer(link(5, 4, 'b'))
    assert.deepEqual(frontier.step(), { kind: 'fill', range: { from: 4, to: 4 } })
    frontier.offer(link(4, 3, 'b', ''))
    assert.deepEqual(settle(frontier, [], []), [link(4, 3, 'b', ''), link(5, 4, 'b')])
  })

  test('the very first block is replaced too: nothing before it is fetched', () => {
    const frontier = new Frontier<BlockLink>([{ slot: 10, blockhash: '10' }], { heldMax: 10, firstSlot: 7 })
    frontier.reject(10, '10')
    frontier.offer(link(10, 8, 'b'))
    // Slots 7 to 9 were empty by the link of the first block only.
    assert.deepEqual(frontier.step(), { kind: 'rewind', fromSlot: 7, blocks: 1 })
    assert.deepEqual(frontier.step(), { kind: 'append', block: link(10, 8, 'b') })
  })

  test('a held block on a parent that no node has does not hold up the others', () => {
    const frontier = new Frontier<BlockLink>([{ slot: 4, blockhash: '4' }], { heldMax: 10 })
    const stray = link(5, 4, 'b')
    for (const block of [stray, link(7, 6)]) frontier.offer(block)
    assert.deepEqual(frontier.step(), { kind: 'fill', range: { from: 4, to: 4 } })
    frontier.releaseUnlinked(4)
    assert.deepEqual(frontier.takeReleased(), [stray])
    assert.deepEqual(frontier.step(), { kind: 'fill', range: { from: 5, to: 6 } })
    frontier.releaseUnlinked(6)
    assert.equal(frontier.heldCount, 1, 'a gap after the head is waited for')
  })

  test('a final block releases held blocks of other forks and its own rejection', () => {
    const frontier = new Frontier<BlockLink>(
      [4, 5, 6].map((slot) => ({ slot, blockhash: `${slot}` })),
      { heldMax: 10 },
    )
    const fork = link(8, 6, 'b')
    for (const block of [fork, link(9, 7)]) frontier.offer(block)
    frontier.reject(6, '6')
    frontier.markFinal(6)
    assert.deepEqual(frontier.takeReleased(), [fork])
    assert.deepEqual(frontier.step(), { kind: 'fill', range: { from: 7, to: 7 } })
  })

  test('the chain is stored whatever the order of blocks, with losses and duplicates', (t) => {
    const gaps = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 2, maxLength: 40 })
    checkProperty(
      t,
      fc.property(gaps, fc.infiniteStream(fc.nat(1000)), fc.integer({ min: 1, max: 12 }), (steps, chance, heldMax) => {
        const chain: BlockLink[] = []
        for (const step of steps) chain.push(link((chain.at(-1)?.slot ?? 0) + step, chain.at(-1)?.slot ?? 0))
        const [first, ...others] = chain as [BlockLink, ...BlockLink[]]
        const frontier = new Frontier<BlockLink>([], { heldMax })
        frontier.offer(first)
        let stored = settle(frontier, chain, [])
        const draw = (limit: number): number => (chance.next().value ?? 0) % limit
        const arriving = others
          .filter(() => draw(4) > 0)
          .flatMap((block) => (draw(5) === 0 ? [block, block] : [block]))
          .map((block) => ({ block, at: block.slot + draw(6) }))
          .toSorted((a, b) => a.at - b.at)
        for (const { block } of arriving) {
          frontier.offer(block)
          if (draw(2) === 0) stored = settle(frontier, chain, stored)
        }
        assert.deepEqual(stored, chain.slice(0, stored.length))
        // Released blocks are fetched again when later blocks come.
        for (let rounds = 0; rounds < chain.length && stored.length < chain.length; rounds++) {
          frontier.offer(chain.at(-1) as BlockLink)
          stored = settle(frontier, chain, stored)
        }
        assert.deepEqual(stored, chain)
      }),
      300,
      20_000,
    )
  })
})
