import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHeldMemory, HeldAmounts } from './held-amounts.ts'
import { createTableMemory, SharedTable } from './shared-table.ts'
import { createWindowCounts, createWindowTable } from './window-counts.ts'

const SEED = [1, 2] as const

/** Finds or adds the row of a key; 0 where there is no room. */
function use(table: SharedTable, key: string, isReplaceable?: (row: number) => boolean): number {
  const stripe = table.lock(key)
  let row = table.find(stripe)
  if (row === 0) row = table.add(stripe, isReplaceable)
  else table.touch(stripe, row)
  table.unlock(stripe)
  return row
}

function find(table: SharedTable, key: string): number {
  return table.find(table.stripeOf(key))
}

test('each key has a row of its own, which every thread finds', () => {
  const memory = createTableMemory({ keysMax: 4096, fields: 3 })
  const tables = [new SharedTable(memory, 0), new SharedTable(memory, 1, { memoMax: 64 })] as const
  const rows = Array.from({ length: 500 }, (_, at) => {
    const row = use(tables[0], `key ${at}`)
    tables[0].values.set([at, -at, 7], row)
    return row
  })
  assert.equal(new Set(rows).size, 500)
  for (const [at, row] of rows.entries()) {
    assert.equal(find(tables[1], `key ${at}`), row)
    assert.deepEqual([...tables[1].values.subarray(row, row + 3)], [at, -at, 7])
  }
  assert.equal([...tables[1].rows()].length, 500)
  assert.equal(find(tables[1], 'another'), 0)
})

test('a full stripe replaces the row that was used least recently, with zeros', () => {
  const table = new SharedTable(createTableMemory({ keysMax: 32, fields: 2 }), 0)
  for (let at = 0; at < 32; at++) table.values.fill(at + 1, use(table, `key ${at}`), use(table, `key ${at}`) + 2)
  use(table, 'key 0')
  const row = use(table, 'new')
  assert.equal(find(table, 'key 1'), 0)
  assert.deepEqual([...table.values.subarray(row, row + 2)], [0, 0])
  assert.ok(find(table, 'key 0') !== 0 && find(table, 'key 2') !== 0)
})

test('rows that the caller keeps are not replaced', () => {
  const table = new SharedTable(createTableMemory({ keysMax: 32, fields: 1 }), 0)
  for (let at = 0; at < 32; at++) table.values[use(table, `key ${at}`)] = at === 9 ? 0 : 1
  const isReplaceable = (row: number) => table.values[row] === 0
  const row = use(table, 'new', isReplaceable)
  assert.equal(find(table, 'key 9'), 0)
  table.values[row] = 1
  assert.equal(use(table, 'one more', isReplaceable), 0)
})

test('ticks of use may wrap around', () => {
  const memory = createTableMemory({ keysMax: 32, fields: 1, seed: SEED })
  const table = new SharedTable(memory, 0)
  // The tick of the only stripe, just below the end of its range.
  new Int32Array(memory)[16 + 2] = 2 ** 31 - 20
  for (let at = 0; at < 32; at++) use(table, `key ${at}`)
  use(table, 'new')
  assert.equal(find(table, 'key 0'), 0)
  assert.ok(find(table, 'key 1') !== 0)
})

test('the seed decides where keys are', () => {
  const stripesOf = (seed: readonly [number, number]) => {
    const table = new SharedTable(createTableMemory({ keysMax: 65_536, fields: 1, seed }), 0)
    return Array.from({ length: 100 }, (_, at) => table.stripeOf(`192.0.2.${at}`))
  }
  assert.deepEqual(stripesOf(SEED), stripesOf(SEED))
  const same = stripesOf(SEED).filter((stripe, at) => stripe === stripesOf([1, 3])[at])
  assert.ok(same.length < 5, `${same.length} of 100 are in the same place`)
  assert.ok(new Set(stripesOf(SEED)).size > 90)
})

test('keys spread evenly: 20,000 that may not be replaced have room in a table for 65,536', () => {
  const held = new HeldAmounts(createHeldMemory({ threads: 1 }), 0)
  const maxima = { total: 1e6, key: 1 }
  for (let at = 0; at < 20_000; at++)
    assert.equal(held.take(`2001:db8:${at.toString(16)}:0::/64`, 1, maxima), undefined)
  assert.equal(held.total, 20_000)
})

test('the lock of a dead thread is released by unlockAll, that of a living one is not', () => {
  const memory = createTableMemory({ keysMax: 32, fields: 1 })
  const [dead, living] = [new SharedTable(memory, 1), new SharedTable(memory, 2)]
  dead.lock('a')
  const startedMs = performance.now()
  living.unlockAll(1)
  const stripe = living.lock('a')
  // Without unlockAll the lock would be taken over after 2,000 sleeps of half a millisecond.
  assert.ok(performance.now() - startedMs < 500)
  living.unlockAll(1)
  assert.equal(Atomics.load(new Int32Array(memory), stripe), 3)
})

test('amounts are refused by total or key, whichever thread holds them, and reclaimed from one thread only', () => {
  const memory = createHeldMemory({ threads: 3 })
  const [main, a, b] = [new HeldAmounts(memory, 0), new HeldAmounts(memory, 1), new HeldAmounts(memory, 2)]
  const maxima = { total: 100, key: 60 }
  assert.equal(a.take('x', 50, maxima), undefined)
  assert.equal(b.take('x', 11, maxima), 'key')
  assert.equal(b.take('x', 10, maxima), undefined)
  assert.equal(b.take('y', 41, maxima), 'total')
  assert.equal(b.take('x', 41, maxima), 'total')
  assert.deepEqual([b.exceeds('y', 41, maxima), b.exceeds('x', 1, maxima)], ['total', 'key'])
  assert.equal(b.takeUnkeyed(40, maxima.total), undefined)
  assert.equal(b.takeUnkeyed(1, maxima.total), 'total')
  assert.deepEqual([main.total, a.own, b.own, main.of('x'), main.of('y')], [100, 50, 50, 60, 0])
  main.reclaim(1)
  assert.deepEqual([main.total, a.own, b.own, main.of('x')], [50, 0, 50, 10])
  b.release('x', 10)
  b.releaseUnkeyed(40)
  assert.deepEqual([main.total, main.of('x')], [0, 0])
  assert.deepEqual([a.isShared, new HeldAmounts(createHeldMemory({ threads: 1 }), 0).isShared], [true, false])
})

test('reclaim releases the lock of the total too', () => {
  const memory = createHeldMemory({ threads: 2 })
  new Int32Array(memory.totals)[0] = 2
  const main = new HeldAmounts(memory, 0)
  main.reclaim(1)
  assert.equal(new Int32Array(memory.totals)[0], 0)
})

test('a window begins with the first event, and again with each one above the given count', () => {
  let now = 5
  const counts = createWindowCounts(createWindowTable(32), 100, () => now)
  assert.deepEqual([counts.of('a'), counts.add('a'), counts.add('a'), counts.of('a')], [0, 1, 2, 2])
  now = 104
  assert.deepEqual([counts.add('a', 2), counts.of('b')], [3, 0])
  now = 203
  assert.equal(counts.of('a'), 3)
  now = 204
  assert.deepEqual([counts.of('a'), counts.add('a')], [0, 1])
})
