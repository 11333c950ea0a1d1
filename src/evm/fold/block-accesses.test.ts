import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { KeyHasher, STORAGE_KEY_WORDS } from './access-key.ts'
import { AccessRun, NOT_IN_BLOCK, RUN_MAX } from './access-run.ts'
import { BLOCK_LIMITS, BlockAccesses } from './block-accesses.ts'
import { SpaceSaving } from './space-saving.ts'

const hasher = new KeyHasher(STORAGE_KEY_WORDS, 1)

/** A block of one transaction, and a function that touches slots by number. */
function openBlock(keysMax: number) {
  const slots = new SpaceSaving({ counters: 10, words: STORAGE_KEY_WORDS, keysMax })
  const block = new BlockAccesses(slots)
  block.begin(1)
  const touch = (from: number, count: number, txn = 0): void => {
    const run = new AccessRun(STORAGE_KEY_WORDS)
    for (let at = 0; at < count; at++) {
      run.add(0, txn)
      run.keys[at * STORAGE_KEY_WORDS + 12] = from + at
      run.hashes[at] = hasher.hash(run.keys, at * STORAGE_KEY_WORDS)
    }
    slots.add(run)
    block.add(run)
  }
  return { block, touch }
}

describe('a block is too large', () => {
  test('above the slot limit, not at it', () => {
    const { block, touch } = openBlock(BLOCK_LIMITS.slots + 2 * RUN_MAX)
    for (let from = 0; from < BLOCK_LIMITS.slots; from += RUN_MAX) touch(from, RUN_MAX)
    touch(BLOCK_LIMITS.slots, 1, NOT_IN_BLOCK)
    assert.deepEqual([block.isTooLarge, block.slotsTouched], [false, BLOCK_LIMITS.slots])
    touch(BLOCK_LIMITS.slots, 1)
    assert.equal(block.isTooLarge, true)
    block.begin(1)
    touch(0, 3)
    assert.deepEqual([block.isTooLarge, block.accesses, block.slotsTouched], [false, 3, 3], 'the next one is not')
  })

  test('above the access limit, not at it', () => {
    const { block, touch } = openBlock(4 * RUN_MAX)
    for (let done = 0; done < BLOCK_LIMITS.accesses; done += RUN_MAX) touch(0, RUN_MAX)
    touch(0, 1, NOT_IN_BLOCK)
    assert.deepEqual([block.isTooLarge, block.accesses], [false, BLOCK_LIMITS.accesses])
    touch(0, 1)
    assert.equal(block.isTooLarge, true)
  })

  test('when slots were renumbered since it began', () => {
    const { block, touch } = openBlock(RUN_MAX)
    touch(0, 300)
    assert.equal(block.isTooLarge, false)
    touch(300, 300)
    assert.equal(block.isTooLarge, true)
    block.begin(1)
    touch(600, 300)
    assert.equal(block.isTooLarge, true, 'forgotten again in the middle')
    block.begin(1)
    touch(600, 100)
    assert.deepEqual([block.isTooLarge, block.accesses], [false, 100])
  })
})
