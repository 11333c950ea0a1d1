import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeqCounter, type SeqStore } from './seq-counter.ts'

const NOW_MS = Date.UTC(2027, 0, 1)
const fail = (error: unknown): void => assert.fail(String(error))

function createStore(kept?: number): SeqStore & { writes: number[] } {
  const writes: number[] = []
  return { read: () => writes.at(-1) ?? kept, write: (limit) => void writes.push(limit), writes }
}

test('without a store, numbers start with the clock in microseconds, below 2^53', () => {
  const store = createStore()
  const seq = createSeqCounter({ store, nowMs: () => NOW_MS, onFault: fail })
  assert.equal(seq.upcoming, NOW_MS * 1000)
  assert.equal(seq.next(), NOW_MS * 1000)
  assert.equal(seq.next(), NOW_MS * 1000 + 1)
  assert(seq.upcoming < 2 ** 53)
})

test('the stored limit is never below the last number returned, with one write per million', () => {
  const store = createStore(41)
  const seq = createSeqCounter({ store, nowMs: () => NOW_MS, onFault: fail })
  assert.equal(seq.upcoming, 43, 'behind the limit kept, and not right behind it')
  assert.deepEqual(store.writes, [], 'nothing is written for nothing')
  let last = 0
  for (let at = 0; at < 1_500_000; at++) {
    last = seq.next()
    if (last > (store.writes.at(-1) ?? 0)) assert.fail(`${last} is above the limit kept`)
  }
  assert.equal(store.writes.length, 2)
  // A restart at any moment starts above every number returned, with one number skipped.
  const again = createSeqCounter({ store, nowMs: () => 0, onFault: fail })
  assert(again.upcoming > last + 1)
})

test('reports a store that cannot be read or written and takes numbers from the clock', () => {
  const faults: unknown[] = []
  const store: SeqStore = {
    read: () => {
      throw new Error('not a number')
    },
    write: () => {
      throw new Error('disk full')
    },
  }
  const seq = createSeqCounter({ store, nowMs: () => NOW_MS, onFault: (error) => void faults.push(error) })
  assert.equal(seq.next(), NOW_MS * 1000)
  assert.equal(seq.next(), NOW_MS * 1000 + 1)
  assert.equal(faults.length, 2)
})
