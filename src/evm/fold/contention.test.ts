import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../../core/test-seed.ts'
import { addressOf, idOf, recordBlock, slotOf, type TestAccess, type TestBlock, TIMES } from '../test-block.ts'
import type { ConflictExtras, ContentionData } from './contention.ts'
import { createFoldRing, type FoldRingOptions, foldBlocks } from './test-fold.ts'

/** A direct implementation of the definitions with maps of strings. */
function contentionOf(
  block: TestBlock,
): Omit<ContentionData, 'block_wall_time_ns' | 'total_tx_time_ns' | 'parallel_efficiency_pct'> {
  const slots = new Map<string, { txns: Set<number>; accesses: number }>()
  const contractsOfTxn = block.txns.map(() => new Set<string>())
  const touch = ({ contract, slot, isTransient }: TestAccess, txn?: number): void => {
    if (isTransient === true) return
    const key = `${addressOf(contract)} ${slotOf(slot)}`
    const known = slots.get(key) ?? { txns: new Set(), accesses: 0 }
    known.accesses += 1
    if (txn !== undefined) known.txns.add(txn)
    if (txn !== undefined) contractsOfTxn[txn]?.add(addressOf(contract))
    slots.set(key, known)
  }
  for (const access of [...(block.prologue ?? []), ...(block.epilogue ?? [])]) touch(access)
  for (const [txn, { accesses }] of block.txns.entries()) for (const access of accesses) touch(access, txn)

  const touched = [...slots].filter(([, { txns }]) => txns.size > 0)
  const contended = touched.filter(([, { txns }]) => txns.size > 1)
  const contracts = Map.groupBy(touched, ([key]) => key.slice(0, 42))
  const edges = new Map<string, number>()
  for (const names of contractsOfTxn) {
    const sorted = [...names].toSorted()
    for (const [at, a] of sorted.entries()) {
      for (const b of sorted.slice(at + 1)) edges.set(`${a} ${b}`, (edges.get(`${a} ${b}`) ?? 0) + 1)
    }
  }
  const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
  return {
    block_number: block.number,
    block_id: idOf(block.number, block.fork),
    total_unique_slots: touched.length,
    contended_slot_count: contended.length,
    contention_ratio: touched.length === 0 ? 0 : contended.length / touched.length,
    total_txn_count: block.txns.length,
    top_contended_slots: contended
      .toSorted(([a, x], [b, y]) => y.txns.size - x.txns.size || y.accesses - x.accesses || text(a, b))
      .slice(0, 20)
      .map(([key, { txns, accesses }]) => {
        const [address, slot] = key.split(' ') as [`0x${string}`, `0x${string}`]
        return { address, slot, txn_count: txns.size, access_count: accesses }
      }),
    top_contended_contracts: [...contracts]
      .map(([address, its]) => {
        const contendedSlots = its.filter(([, { txns }]) => txns.size > 1).length
        return {
          address: address as `0x${string}`,
          total_slots: its.length,
          contended_slots: contendedSlots,
          total_accesses: its.reduce((sum, [, { accesses }]) => sum + accesses, 0),
          contention_score: contendedSlots / its.length,
        }
      })
      .filter(({ contended_slots }) => contended_slots > 0)
      .toSorted(
        (x, y) =>
          y.contended_slots - x.contended_slots ||
          y.contention_score - x.contention_score ||
          text(x.address, y.address),
      )
      .slice(0, 15),
    contract_edges: [...edges]
      .toSorted(([a, x], [b, y]) => y - x || text(a, b))
      .slice(0, 15)
      .map(([key, shared]) => {
        const [a, b] = key.split(' ') as [`0x${string}`, `0x${string}`]
        return { contract_a: a, contract_b: b, shared_txn_count: shared }
      }),
  }
}

/** Section 17 of the service's reference: level = 1 + highest level of an earlier writer of a slot touched here. */
function wavesOf(block: TestBlock): number[] {
  const levels: number[] = []
  for (const [txn, { accesses }] of block.txns.entries()) {
    const isTouched = (other: TestAccess) =>
      accesses.some((mine) => mine.isTransient !== true && mine.contract === other.contract && mine.slot === other.slot)
    const isWrite = (access: TestAccess) => access.isModified === true && access.isTransient !== true
    const before = levels.filter((_, earlier) =>
      block.txns[earlier]?.accesses.some((other) => isWrite(other) && isTouched(other)),
    )
    levels[txn] = 1 + Math.max(0, ...before)
  }
  return levels
}

const access: fc.Arbitrary<TestAccess> = fc.record({
  // A few hot slots and some with one access.
  contract: fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: 40 })),
  slot: fc.oneof(fc.nat({ max: 2 }), fc.nat({ max: 300 })),
  isModified: fc.boolean(),
  isTransient: fc.constantFrom(false, false, false, true),
})

const block: fc.Arbitrary<TestBlock> = fc.record({
  number: fc.nat({ max: 1000 }),
  txns: fc.array(fc.record({ accesses: fc.array(access, { maxLength: 14 }) }), { maxLength: 25 }),
  prologue: fc.array(access, { maxLength: 3 }),
  epilogue: fc.array(access, { maxLength: 3 }),
  hasOlderOrder: fc.boolean(),
})

function foldOne(given: TestBlock, options: FoldRingOptions = {}): { data: ContentionData; extras: ConflictExtras } {
  const { contention, dropped, incomplete } = foldBlocks([given], options)
  assert.deepEqual([dropped, incomplete], [[], []])
  return contention[0] ?? assert.fail('the block was not folded')
}

describe('contention', () => {
  test('equals the direct implementation for random blocks', () => {
    fc.assert(
      fc.property(block, fc.nat(), (given, seed) => {
        const { data, extras } = foldOne(given, { seed })
        const { block_wall_time_ns, total_tx_time_ns, parallel_efficiency_pct, ...rest } = data
        assert.deepEqual(rest, contentionOf(given))
        const levels = wavesOf(given)
        const depth = Math.max(0, ...levels)
        assert.equal(extras.depth, depth)
        assert.deepEqual(
          extras.waves,
          Array.from({ length: depth }, (_, wave) => levels.filter((level) => level === wave + 1).length),
        )
        const total = Number(TIMES.txnSpan) * given.txns.length
        assert.deepEqual([block_wall_time_ns, total_tx_time_ns], [Number(TIMES.wall), total])
        const saved = Math.max(0, total - Number(TIMES.wall))
        assert.equal(parallel_efficiency_pct, total === 0 ? 0 : (saved / total) * 100)
      }),
      seedFor('contention', 150),
    )
  })

  for (const turn of [2 ** 31, 2 ** 32, 3 * 2 ** 31, 2 ** 40]) {
    test(`is the same when numbers and offsets cross ${turn} within a block`, () => {
      fc.assert(
        fc.property(block, fc.nat({ max: 30 }), fc.nat({ max: 100 }), (given, events, steps) => {
          const nextPayloadByte = turn - 16 * steps
          const control = { lastSeqno: turn - events, nextPayloadByte, windowStart: nextPayloadByte }
          assert.deepEqual(foldOne(given, { control }), foldOne(given))
        }),
        seedFor(`contention past ${turn}`, 30),
      )
    })
  }

  test('does not include slots of earlier blocks, trimmed or not', () => {
    fc.assert(
      fc.property(fc.array(block, { minLength: 2, maxLength: 5 }), fc.constantFrom(1, 5, 1000), (blocks, counters) => {
        const { contention } = foldBlocks(blocks, { counters })
        for (const [at, given] of blocks.entries()) assert.deepEqual(contention[at], foldOne(given), `block ${at}`)
      }),
      seedFor('contention of several blocks', 30),
    )
  })

  test('a reset of the top accesses within a block does not change its contention', () => {
    fc.assert(
      fc.property(block, fc.nat({ max: 400 }), (given, events) => {
        const { recorder, reader, fold, log } = createFoldRing({ counters: 2 })
        recordBlock(recorder, given)
        recorder.flush()
        reader.poll(0)
        const middle = Math.min(events, reader.batch.count)
        fold.fold(reader.batch, 0, middle)
        fold.topAccesses.reset()
        fold.fold(reader.batch, middle)
        while (reader.poll(0).kind === 'events') fold.fold(reader.batch)
        assert.deepEqual(log.contention, [foldOne(given)])
      }),
      seedFor('contention over a reset', 30),
    )
  })

  test('ties in every list are ordered by key bytes, for any order of arrival', () => {
    const accesses = Array.from({ length: 40 }, (_, at) => ({ contract: 200 - at * 3, slot: 500 - at }))
    const two = (list: TestAccess[]): TestBlock => ({ number: 1, txns: [{ accesses: list }, { accesses: list }] })
    const forwards = foldOne(two(accesses)).data
    assert.deepEqual(foldOne(two(accesses.toReversed())).data, forwards)
    assert.equal(forwards.top_contended_slots.length, 20)
    assert.equal(forwards.contract_edges.length, 15)
    assert.equal(forwards.contract_edges[0]?.contract_a, addressOf(200 - 39 * 3))
  })

  test('a transaction that touches 5,000 contracts takes no quadratic time', () => {
    const accesses = Array.from({ length: 5000 }, (_, contract) => ({ contract: contract + 1, slot: 0 }))
    const { data } = foldOne(
      { number: 1, txns: [{ accesses }, { accesses }, { accesses: accesses.slice(0, 2) }] },
      { isLarge: true },
    )
    assert.deepEqual(data.contract_edges[0], {
      contract_a: addressOf(1),
      contract_b: addressOf(2),
      shared_txn_count: 3,
    })
    assert.deepEqual(data.contract_edges[14], {
      contract_a: addressOf(1),
      contract_b: addressOf(16),
      shared_txn_count: 2,
    })
  })

  test('handles 25,000 transactions', () => {
    const txns = Array.from({ length: 25_000 }, (_, at) => ({
      accesses: [{ contract: 1, slot: at % 100, isModified: at % 100 === 0 }],
    }))
    const { data, extras } = foldOne({ number: 1, txns }, { isLarge: true })
    assert.deepEqual([data.total_txn_count, data.total_unique_slots, data.contended_slot_count], [25_000, 100, 100])
    assert.deepEqual([extras.depth, extras.waves.length, extras.contended_with_writer], [250, 64, 1])
  })

  test('a block with very many slots and a small one after it each count their own slots', () => {
    const many = (count: number): TestAccess[] => Array.from({ length: count }, (_, slot) => ({ contract: 1, slot }))
    const blocks = [20_000, 3].map((count, at) => ({
      number: at + 1,
      txns: [{ accesses: many(count) }, { accesses: many(count) }],
    }))
    const { contention } = foldBlocks(blocks, { isLarge: true })
    assert.deepEqual(
      contention.map(({ data }) => [data.total_unique_slots, data.contended_slot_count]),
      [
        [20_000, 20_000],
        [3, 3],
      ],
    )
  })

  test('a block without transactions has zeros', () => {
    const { data } = foldOne({ number: 3, txns: [] })
    assert.deepEqual(
      [data.parallel_efficiency_pct, data.contention_ratio, data.total_unique_slots, data.contract_edges],
      [0, 0, 0, []],
    )
  })
})
