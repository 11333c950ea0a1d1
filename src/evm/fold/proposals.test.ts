import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EVENT } from '../event/type.ts'
import { idOf, recordBlock, recordOpenBlock, type TestBlock } from '../test-block.ts'
import { createFoldRing, type FoldLog } from './test-fold.ts'

const at = { timeNs: 1_900_000_000_000_000_000n }

function blockOf(number: number, txns = 2): TestBlock {
  return { number, txns: Array.from({ length: txns }, () => ({ accesses: [{ contract: 1, slot: 1 }] })) }
}

describe('several proposals of one number', () => {
  const ended = (log: FoldLog) => log.contention.map(({ data }) => [data.block_id, data.replaces_block_id])

  test('each has its id, and names the one that was executed before it', () => {
    const { recorder, run } = createFoldRing()
    recordBlock(recorder, { ...blockOf(5), fork: 1 })
    recordBlock(recorder, { ...blockOf(6), fork: 1 })
    recordBlock(recorder, { ...blockOf(5), fork: 2 })
    recordBlock(recorder, { ...blockOf(5), fork: 3 })
    const log = run()
    assert.deepEqual(ended(log), [
      [idOf(5, 1), undefined],
      [idOf(6, 1), undefined],
      [idOf(5, 2), idOf(5, 1)],
      [idOf(5, 3), idOf(5, 2)],
    ])
    for (const { data, extras } of log.contention)
      assert.deepEqual([extras.block_id, extras.replaces_block_id], [data.block_id, data.replaces_block_id])
    assert(!('replaces_block_id' in (log.contention[0]?.data ?? assert.fail())), 'left out where there is none')
  })

  test('the number counts once for TPS, with the latest proposal', () => {
    const { recorder, run } = createFoldRing()
    for (const number of [1, 2]) recordBlock(recorder, blockOf(number, 10))
    recordBlock(recorder, { ...blockOf(3, 40), fork: 1 })
    recordBlock(recorder, { ...blockOf(3, 4), fork: 2 })
    recordBlock(recorder, blockOf(4, 2))
    assert.deepEqual(run().tps, [undefined, undefined, 10 + 10 + 20, 10 + 10 + 2, 10 + 4 + 1])
  })

  test('a proposal without figures is replaced too, and its transactions count', () => {
    const { recorder, run } = createFoldRing()
    for (const number of [3, 4]) recordBlock(recorder, blockOf(number, 10))
    recorder.add('BLOCK_START', { id: idOf(5, 1), block_number: 5n, txn_count: 1n }, at)
    recorder.add('BLOCK_END', {}, at)
    recordBlock(recorder, { ...blockOf(5, 4), fork: 2 })
    const log = run()
    assert.deepEqual(log.contention.at(-1)?.data.replaces_block_id, idOf(5, 1))
    assert.deepEqual(log.tps.slice(2), [10 + 10 + 0, 10 + 10 + 2])
  })
})

describe('a TPS window that is not whole', () => {
  test('has no value after a gap, a dropped block and a lost start', () => {
    const { recorder, run, fold, log } = createFoldRing()
    const three = (from: number): void => {
      for (const number of [from, from + 1, from + 2]) recordBlock(recorder, blockOf(number))
      run()
    }
    three(1)
    fold.gap()
    three(4)
    recordOpenBlock(recorder, blockOf(7))
    three(8)
    recorder.addEncoded(EVENT.BLOCK_START, new Uint8Array(4), at)
    three(11)
    const none = [undefined, undefined]
    assert.deepEqual(log.tps, [...none, 5, ...none, 5, ...none, 5, ...none, 5])
  })
})

test('a later proposal that was not seen to its end leaves its number without a count', () => {
  const { recorder, run } = createFoldRing()
  for (const number of [1, 2, 3]) recordBlock(recorder, blockOf(number))
  recordOpenBlock(recorder, { ...blockOf(3), fork: 2 })
  for (const number of [4, 5, 6]) recordBlock(recorder, blockOf(number))
  assert.deepEqual(run().tps, [undefined, undefined, 5, undefined, undefined, 5])
})
