import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createResultBudget, HeldResult, PART_BYTES } from './held-result.ts'

const BIG = 64 * PART_BYTES

function open(budget = createResultBudget({ heldBytesMax: BIG, heldBytesPerSubscription: BIG }), owner = 'a') {
  return { budget, result: new HeldResult({ owner, bytesMax: BIG }, budget) }
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

test('added text is read after the head, in parts of a bounded size', () => {
  const { budget, result } = open()
  const rows = ['ä'.repeat(1000), 'x'.repeat(3 * PART_BYTES), 'y', 'z'.repeat(PART_BYTES - 1)]
  for (const row of rows) result.add(row)
  result.finish('head')
  assert.equal(budget.heldBytes, result.bytes)
  assert.equal(readAll(result), `head${rows.join('')}`)
  assert.equal(budget.heldBytes, 0)
  assert.equal(result.read().length, 0)
})

test('a small result does not count against the budget; a large one counts until it is read or discarded', () => {
  const { budget, result } = open()
  result.add('x'.repeat(1000))
  result.finish('')
  assert.equal(budget.heldBytes, 0)
  const { result: large } = open(budget)
  large.add('x'.repeat(4 * PART_BYTES))
  assert.equal(budget.heldBytes, 4 * PART_BYTES)
  large.finish('')
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
    result.finish('')
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
