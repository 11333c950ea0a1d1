import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createSeededRandom } from '../../core/random.ts'
import { type Run, runOnLanes } from './lanes.ts'
import { type Account, createEvmState, type Slot, storageVariable } from './state.ts'
import type { Txn } from './txn.ts'
import { createWorkload, pickZipf } from './workload.ts'

const state = createEvmState(createSeededRandom(1))
const template = createWorkload(state, createSeededRandom(2), { failShare: 0 })()

/** A transaction of 100 ns that touches the given variables of one contract; those marked with `!` are changed. */
function txn(sender: number, ...names: string[]): Txn {
  const contract = state.router
  const slots = names.map((name) => {
    const slot: Slot = storageVariable(contract, Number.parseInt(name, 10))
    return { slot, start: 0, end: name.endsWith('!') ? 1 : 0, isTransient: false }
  })
  const account: Account = contract
  const touch = { account, nonce: 0, balanceGwei: 0, nonceAfter: 0, balanceGweiAfter: 0, slots }
  return { ...template, sender: state.users[sender] as Account, touches: [touch], costNs: 100_000 }
}

const starts = (runs: readonly Run[]): number[] => runs.map(({ startNs }) => Math.floor(startNs / 1000))

describe('runOnLanes', () => {
  test('runs transactions without conflicts in parallel', () => {
    const runs = runOnLanes([txn(0, '1!'), txn(1, '2!'), txn(2, '3!'), txn(3, '4!')], 2)
    assert.deepEqual(starts(runs), [0, 0, 100, 100])
    assert(runs.every(({ isRepeated }) => !isRepeated))
  })

  test('repeats a transaction that read a slot before its write was committed; reading the same slot is no conflict', () => {
    const runs = runOnLanes([txn(0, '1!', '9'), txn(1, '1', '9'), txn(2, '9')], 3)
    assert.deepEqual(
      runs.map(({ isRepeated }) => isRepeated),
      [false, true, false],
    )
    assert.deepEqual(starts(runs), [0, 102, 0], 'the second run starts after the commit')
  })

  test('runs transactions of one sender sequentially', () => {
    assert.deepEqual(
      runOnLanes([txn(5, '1'), txn(5, '2')], 4).map(({ isRepeated }) => isRepeated),
      [false, true],
    )
  })

  test('a hot slot makes a block as long as the sum of its transactions, for any number of lanes', () => {
    const runs = runOnLanes(
      Array.from({ length: 20 }, (_, at) => txn(at, '1!')),
      16,
    )
    assert(Math.max(...runs.map(({ endNs }) => endNs)) >= 20 * 100_000)
  })
})

test('pickZipf picks items with the frequency of their rank', () => {
  const random = createSeededRandom(3)
  const items = Array.from({ length: 1000 }, (_, at) => at)
  const counts = new Float64Array(1000)
  for (let draw = 0; draw < 100_000; draw++) {
    const item = pickZipf(items, random)
    counts[item] = (counts[item] as number) + 1
  }
  const ratio = (rank: number): number => (counts[0] as number) / (counts[rank - 1] as number)
  assert(Math.abs(ratio(2) - 1.7) < 0.3 && Math.abs(ratio(10) - 7.3) < 2, `${ratio(2)} ${ratio(10)}`)
  assert(counts.every((count) => count > 0))
})
