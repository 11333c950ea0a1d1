import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeqCounter, type SeqStore } from './seq-counter.ts'

const NOW_MS = Date.UTC(2027, 0, 1)
const fail = (error: unknown): void => assert.fail(String(error))

function createStore(kept?: number): SeqStore & { writes: number[] } {
  const writes: number[] = []
  return { read: () => writes.at(-1) ?? kept, write: (limit) => void writes.push(limit), writes }
}

function createFailingStore(kept: number | undefined) {
  const store = {
    kept: kept ?? 0,
    isFailing: true,
    tries: 0,
    read: () => (kept === undefined && store.kept === 0 ? undefined : store.kept),
    write(limit: number): void {
      store.tries += 1
      if (store.isFailing) throw new Error('disk full')
      store.kept = limit
    },
  }
  return store
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
  const store = createStore(NOW_MS * 1000 + 41)
  const seq = createSeqCounter({ store, nowMs: () => NOW_MS, onFault: fail })
  assert.equal(seq.upcoming, NOW_MS * 1000 + 43, 'behind the limit kept, and not right behind it')
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

describe('numbers of a store that cannot be written', () => {
  test('are above those of the run before it', () => {
    const clock = createManualClock()
    const store = createFailingStore(41_000_000)
    const runs = Array.from({ length: 3 }, () => {
      const seq = createSeqCounter({ store, nowMs: clock.nowMs, onFault: () => {} })
      clock.advance(1000)
      return { first: seq.next(), last: Array.from({ length: 5000 }, () => seq.next()).at(-1) as number }
    })
    for (const [at, { first }] of runs.entries())
      assert(first > (runs[at - 1]?.last ?? 41_000_000) + 1, `run ${at} starts with ${first}`)
  })

  test('are followed by a write 10 s after the failed one; the first failure in a row is reported', () => {
    const clock = createManualClock()
    const store = createFailingStore(7)
    const faults: unknown[] = []
    const seq = createSeqCounter({ store, nowMs: clock.nowMs, onFault: (error) => void faults.push(error) })
    const use = (frames: number): void => {
      for (let at = 0; at < frames; at++) seq.next()
    }
    use(1000)
    assert.deepEqual([store.tries, faults.length], [1, 1])
    clock.advance(9999)
    use(1000)
    assert.equal(store.tries, 1)
    clock.advance(1)
    use(1000)
    assert.deepEqual([store.tries, faults.length], [2, 1])
    // An administrator sets the clock back by a day.
    clock.setWallMs(clock.nowMs() - 86_400_000)
    use(1000)
    assert.equal(store.tries, 3)
    store.isFailing = false
    clock.advance(10_000)
    use(1000)
    assert.deepEqual([store.tries, faults.length], [4, 1])
    assert(store.kept > seq.upcoming)
    store.isFailing = true
    use(1_000_000)
    assert.deepEqual([store.tries, faults.length], [5, 2], 'a later failure is reported again')
  })

  test('never repeat or decrease over any runs, failures and clocks that are not set back', (t) => {
    const run = fc.record({
      pauseMs: fc.integer({ min: 1000, max: 100_000 }),
      frames: fc.integer({ min: 0, max: 300 }),
      isFailing: fc.boolean(),
    })
    const kept = fc.option(fc.integer({ min: 0, max: NOW_MS * 1000 }), { nil: undefined })
    checkProperty(
      t,
      fc.property(kept, fc.array(run, { maxLength: 20 }), (first, runs) => {
        const clock = createManualClock(NOW_MS)
        const store = createFailingStore(first)
        let last = first ?? 0
        for (const { pauseMs, frames, isFailing } of runs) {
          store.isFailing = isFailing
          const seq = createSeqCounter({ store, nowMs: clock.nowMs, onFault: () => {} })
          assert(seq.upcoming > last + 1)
          for (let at = 0; at < frames; at++) last = seq.next()
          assert(isFailing || frames === 0 || store.kept >= last)
          clock.advance(pauseMs)
        }
      }),
      200,
      5000,
    )
  })
})

test('a clock far in the future leaves half of the numbers below 2^53', () => {
  const nowMs = (): number => Date.UTC(9999, 0, 1)
  for (const kept of [undefined, 41]) {
    const store = createStore(kept)
    assert.equal(createSeqCounter({ store, nowMs, onFault: fail }).next(), 2 ** 52)
    assert.equal(createSeqCounter({ store, nowMs, onFault: fail }).next(), 2 ** 52 + 1_000_002)
  }
})
