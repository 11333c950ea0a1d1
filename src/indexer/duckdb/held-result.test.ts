import assert from 'node:assert/strict'
import { test } from 'node:test'
import { QueryError } from '../query/error.ts'
import { createResultBudget, HeldResult, PART_BYTES } from './held-result.ts'

const BIG = 64 * PART_BYTES

function open(
  budget = createResultBudget({ heldBytesMax: BIG, heldBytesPerSubscription: BIG }),
  owner = 'a',
  windowBytes = BIG,
) {
  return { budget, result: new HeldResult({ owner, bytesMax: BIG, windowBytes }, budget) }
}

function readAll(result: HeldResult): string {
  const parts: Buffer[] = []
  while (result.bytes > 0) {
    const part = result.read()
    assert.ok(part.length > 0 && part.length <= PART_BYTES, `a part of ${part.length} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

test('texts and bytes are read in the order in which they were added, in parts of a bounded size', () => {
  const { budget, result } = open()
  const rows = ['ä'.repeat(1000), 'x'.repeat(3 * PART_BYTES), 'y', 'z'.repeat(PART_BYTES - 1)]
  result.add('head')
  for (const [at, row] of rows.entries()) result.add(at % 2 === 0 ? row : Buffer.from(row))
  result.finish()
  assert.equal(budget.heldBytes, result.bytes)
  assert.equal(readAll(result), `head${rows.join('')}`)
  assert.equal(budget.heldBytes, 0)
  assert.equal(result.read().length, 0)
})

test('a small result does not count against the budget; a large one counts until it is read or discarded', () => {
  const { budget, result } = open()
  result.add('x'.repeat(1000))
  result.finish()
  assert.equal(budget.heldBytes, 0)
  const { result: large } = open(budget)
  large.add('x'.repeat(4 * PART_BYTES))
  assert.equal(budget.heldBytes, 4 * PART_BYTES)
  large.finish()
  large.read()
  assert.equal(budget.heldBytes, 3 * PART_BYTES)
  large.discard()
  assert.deepEqual([budget.heldBytes, large.bytes], [0, 0])
})

test('refuses a result over bytesMax with TOO_MANY_BYTES', () => {
  const { result } = open()
  assert.throws(
    () => {
      for (let at = 0; at < 100; at++) result.add('x'.repeat(PART_BYTES))
    },
    { type: 'TOO_MANY_BYTES' },
  )
})

test('unread results are limited per subscription and in total, and the refusal names the limit', () => {
  const budget = createResultBudget({ heldBytesMax: 5 * PART_BYTES, heldBytesPerSubscription: 3 * PART_BYTES })
  const hold = (owner: string, parts: number): HeldResult => {
    const { result } = open(budget, owner)
    result.add('x'.repeat(parts * PART_BYTES))
    result.finish()
    return result
  }
  const first = hold('a', 3)
  const perSubscription = /indexer\.query\.heldBytesPerSubscription: 786432 bytes/
  assert.throws(() => hold('a', 2), { type: 'CANNOT_SCHEDULE_TASK', message: perSubscription, retryAfterSeconds: 1 })
  hold('b', 2)
  assert.throws(() => hold('c', 2), { type: 'CANNOT_SCHEDULE_TASK', message: /heldBytesMax: 1310720 bytes/ })
  // Small results are not counted.
  hold('c', 1)
  first.discard()
  hold('c', 3)
})

test('a writer waits while the window is full, and goes on when some of it was read', async () => {
  const { budget, result } = open(undefined, 'a', 2 * PART_BYTES)
  let isFull = false
  void result.full.then(() => (isFull = true))
  await result.room()
  assert.equal(isFull, false)
  result.add(Buffer.alloc(3 * PART_BYTES))
  assert.equal(result.hasRoom, false)
  let hasRoom = false
  const room = result.room().then(() => (hasRoom = true))
  await result.full
  assert.equal((await result.next()).length, PART_BYTES)
  await new Promise(setImmediate)
  assert.equal(hasRoom, false)
  await result.next()
  await room
  assert.equal(budget.heldBytes, PART_BYTES)
  assert.equal(result.totalBytes, 3 * PART_BYTES)
})

test('bytesMax counts what was read already', () => {
  const { result } = open()
  assert.throws(
    () => {
      for (let at = 0; at < 100; at++) {
        result.add(Buffer.alloc(PART_BYTES))
        result.read()
      }
    },
    { type: 'TOO_MANY_BYTES' },
  )
})

test('a reader waits for the next part; it gets the error of a result that fails, after what was added before', async () => {
  const { result } = open()
  const next = result.next()
  result.add(Buffer.from('some'))
  assert.equal((await next).toString(), 'some')
  result.add(Buffer.from('more'))
  result.fail(new QueryError('TIMEOUT_EXCEEDED', 'too late'))
  assert.equal((await result.next()).toString(), 'more')
  await assert.rejects(result.next(), { type: 'TIMEOUT_EXCEEDED' })
})

test('a writer that waits for room ends when the result is discarded', async () => {
  const { budget, result } = open(undefined, 'a', PART_BYTES)
  result.add(Buffer.alloc(2 * PART_BYTES))
  const room = result.room()
  result.discard()
  await assert.rejects(room, { type: 'QUERY_WAS_CANCELLED' })
  assert.throws(() => result.add(Buffer.alloc(1)), { type: 'QUERY_WAS_CANCELLED' })
  assert.equal(budget.heldBytes, 0)
})
