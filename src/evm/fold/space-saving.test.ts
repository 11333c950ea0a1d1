import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createSeededRandom, randomInt } from '../../core/random.ts'
import { seedFor } from '../../core/test-seed.ts'
import { KeyHasher } from './access-key.ts'
import { type KeyRun, NOT_FOUND } from './key-table.ts'
import { SpaceSaving } from './space-saving.ts'

const WORDS = 5
const hasher = new KeyHasher(WORDS, 11)

function keyOf(id: number): Uint32Array {
  // Bytes in the order of the number, so that keys sort as the numbers do.
  return Uint32Array.of(0, 0, 0, 0, new DataView(Uint32Array.of(id).buffer).getUint32(0, false))
}

/** Few more keys than counters, so that the table is trimmed often. */
const SPARE = 3

/** Adds keys in runs of one to `SPARE`. */
function count(stream: readonly number[], counters: number, keysMax = counters + SPARE): SpaceSaving {
  const summary = new SpaceSaving({ counters, words: WORDS, keysMax })
  addAll(summary, stream)
  return summary
}

function addAll(summary: SpaceSaving, stream: readonly number[]): void {
  for (let at = 0, length = 1; at < stream.length; at += length, length = (length % SPARE) + 1)
    summary.add(runOf(stream.slice(at, at + length)))
}

function runOf(ids: readonly number[]): KeyRun {
  const keys = Uint32Array.from(ids.flatMap((id) => [...keyOf(id)]))
  const hashes = Int32Array.from(ids, (_, at) => hasher.hash(keys, at * WORDS))
  return { count: ids.length, keys, hashes, entries: new Int32Array(ids.length) }
}

/** Count and error of a key. */
function lookUp(summary: SpaceSaving, id: number): { count: number; error: number } | undefined {
  const key = keyOf(id)
  const entry = summary.table.find(key, 0, hasher.hash(key, 0))
  return entry === NOT_FOUND ? undefined : summary.counter(entry)
}

function assertBounds(stream: readonly number[], counters: number): void {
  const truth = new Map<number, number>()
  for (const id of stream) truth.set(id, (truth.get(id) ?? 0) + 1)
  const summary = count(stream, counters)
  assert.equal(summary.seen, stream.length)
  const share = stream.length / counters
  assert(summary.errorMax <= share, 'the error is at most N / m')
  let sum = 0
  for (const [id, times] of truth) {
    const message = lookUp(summary, id)
    if (message === undefined) {
      assert(times <= share, `key ${id} came ${times} times, more than N / m = ${share}, and is missing`)
      assert(times <= summary.errorMax, 'a missing key came no more often than the smallest counter says')
      continue
    }
    assert(
      times <= message.count && message.count <= times + message.error,
      `key ${id}: ${times} true, ${message.count} ± ${message.error}`,
    )
    assert(message.error <= summary.errorMax)
    sum += message.count
  }
  assert.equal(sum, stream.length, 'the counters add up to the stream')
  if (truth.size <= counters) assert.equal(summary.errorMax, 0, 'exact while every key has a counter')
}

/** A direct implementation of the definition, in linear time per step. */
function countNaively(stream: readonly number[], counters: number): Map<number, { count: number; error: number }> {
  const kept = new Map<number, { count: number; error: number; since: number }>()
  for (const [now, id] of stream.entries()) {
    const known = kept.get(id)
    if (known !== undefined) kept.set(id, { ...known, count: known.count + 1, since: now })
    else if (kept.size < counters) kept.set(id, { count: 1, error: 0, since: now })
    else {
      const [victim, { count: smallest }] = [...kept].reduce((a, b) =>
        b[1].count < a[1].count || (b[1].count === a[1].count && b[1].since < a[1].since) ? b : a,
      )
      kept.delete(victim)
      kept.set(id, { count: smallest + 1, error: smallest, since: now })
    }
  }
  return new Map([...kept].map(([id, { count: its, error }]) => [id, { count: its, error }]))
}

function withoutEntry({ count: its, error }: { count: number; error: number }): [number, number] {
  return [its, error]
}

describe('Space-Saving', () => {
  const ids = fc.array(fc.nat({ max: 60 }), { maxLength: 400 })

  test('equals the direct implementation, for every counter', () => {
    fc.assert(
      fc.property(ids, fc.integer({ min: 1, max: 24 }), (stream, counters) => {
        const summary = count(stream, counters)
        const expected = countNaively(stream, counters)
        assert.deepEqual(
          count(stream, counters, 1000).top(counters).map(withoutEntry),
          summary.top(counters).map(withoutEntry),
        )
        summary.trim()
        assert.equal(summary.table.size, expected.size)
        for (const [id, message] of expected) {
          const { count: its, error } = lookUp(summary, id) ?? assert.fail(`${id} is missing`)
          assert.deepEqual({ count: its, error }, message)
        }
        const order = [...expected].toSorted(([a, x], [b, y]) => y.count - x.count || a - b)
        const top = summary.top(7).map(({ entry, count: its }) => [summary.table.keys[entry * WORDS + 4], its])
        assert.deepEqual(
          top,
          order.slice(0, 7).map(([id, reported]) => [keyOf(id)[4], reported.count]),
        )
      }),
      seedFor('space-saving definition', 300),
    )
  })

  test('keeps its bounds on random streams', () => {
    fc.assert(fc.property(ids, fc.integer({ min: 1, max: 40 }), assertBounds), seedFor('space-saving bounds', 300))
  })

  const counters = 50
  const random = createSeededRandom(9)
  const zipf = () => Math.floor(5000 ** random.float())
  const adversarial: Record<string, number[]> = {
    'one key more than there are counters, in turn': Array.from({ length: 5000 }, (_, at) => at % (counters + 1)),
    'no key twice': Array.from({ length: 5000 }, (_, at) => at),
    'heavy keys first, then a flood of new ones': [
      ...Array.from({ length: 2000 }, (_, at) => at % 20),
      ...Array.from({ length: 3000 }, (_, at) => 100 + at),
    ],
    'a flood, then one heavy key': [
      ...Array.from({ length: 4000 }, (_, at) => 100 + at),
      ...Array.from({ length: 200 }, () => 1),
    ],
    'a heavy key hidden between new ones': Array.from({ length: 5000 }, (_, at) => (at % 40 === 0 ? 1 : 100 + at)),
    'counters filled to equal height, then overthrown': [
      ...Array.from({ length: 1000 }, (_, at) => at % counters),
      ...Array.from({ length: 1000 }, (_, at) => 1000 + (at % counters)),
    ],
    'Zipf over 5,000 keys': Array.from({ length: 20_000 }, zipf),
  }
  for (const [name, stream] of Object.entries(adversarial))
    test(`keeps its bounds: ${name}`, () => assertBounds(stream, counters))

  test('returns the entry of each key of a run, also after a trim', () => {
    const summary = count([1, 2, 3, 4, 5, 6, 7], 2)
    const run = runOf([8, 7, 8])
    summary.add(run)
    const names = [...run.entries].map((entry) => summary.table.keys[entry * WORDS + 4])
    assert.deepEqual(
      names,
      [8, 7, 8].map((id) => keyOf(id)[4]),
    )
  })

  test('can be cleared and used again', () => {
    const stream = Array.from({ length: 500 }, () => randomInt(random, 90))
    const summary = count(stream, 30)
    summary.clear()
    assert.deepEqual([summary.seen, summary.errorMax, summary.top(3)], [0, 0, []])
    addAll(summary, stream)
    assert.deepEqual(summary.top(30).map(withoutEntry), count(stream, 30).top(30).map(withoutEntry))
  })
})
