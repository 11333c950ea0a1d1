import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createHeldMemory, HeldAmounts } from '../../core/held-amounts.ts'
import { createHeldBytes } from './held-bytes.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('takes bytes up to the limits of process and owner, and names the exceeded one', () => {
  const heldBytes = createHeldBytes({ bytesMax: 100, ownerBytesMax: 60, waitMs: 1000 }, createManualClock())
  assert.deepEqual(
    [heldBytes.acquire('a', 60), heldBytes.acquire('a', 1), heldBytes.acquire('b', 40)],
    [true, false, true],
  )
  assert.equal(heldBytes.exceeded('c', 1), 'heldBytes')
  heldBytes.release('b', 40)
  assert.equal(heldBytes.exceeded('a', 1), 'heldBytesPerSubscription')
  assert.equal(heldBytes.exceeded('c', 40), undefined)
  heldBytes.release('a', 60)
  assert.equal(heldBytes.total, 0)
})

test('a waiter gets its bytes when they are free, unless it timed out or was cancelled', async () => {
  const clock = createManualClock()
  const heldBytes = createHeldBytes({ bytesMax: 100, ownerBytesMax: 60, waitMs: 1000 }, clock)
  heldBytes.acquire('a', 60)
  const seen: string[] = []
  heldBytes.acquireLater('a', 30, (isTaken) => seen.push(`a ${isTaken}`))
  heldBytes.acquireLater('b', 50, (isTaken) => seen.push(`b ${isTaken}`))
  heldBytes.acquireLater('b', 1, () => seen.push('left')).cancel()
  heldBytes.acquire('c', 10)
  heldBytes.release('c', 10)
  await turn()
  assert.deepEqual(seen, [])
  heldBytes.release('a', 20)
  await turn()
  // 30 for the first are within the limit of the process and beyond that of its owner.
  assert.deepEqual(seen, ['b true'])
  clock.advance(1000)
  assert.deepEqual(seen, ['b true', 'a false'])
  assert.equal(heldBytes.total, 90)
  assert.equal(clock.pendingTimers(), 0)
})

test('bytes that another thread holds count, and waiters get what it releases or has left behind', () => {
  const clock = createManualClock()
  const memory = createHeldMemory({ threads: 3 })
  const [main, own, other] = [0, 1, 2].map((thread) => new HeldAmounts(memory, thread)) as [
    HeldAmounts,
    HeldAmounts,
    HeldAmounts,
  ]
  const options = { bytesMax: 100, ownerBytesMax: 60, waitMs: 1000 }
  const heldBytes = createHeldBytes(options, clock, own)
  const elsewhere = createHeldBytes(options, clock, other)
  assert.ok(elsewhere.acquire('a', 60) && elsewhere.acquire('b', 40))
  assert.equal(heldBytes.acquire('c', 1), false)
  const seen: string[] = []
  heldBytes.acquireLater('c', 40, (isTaken) => seen.push(`c ${isTaken}`))
  heldBytes.acquireLater('a', 10, (isTaken) => seen.push(`a ${isTaken}`))
  heldBytes.acquireLater('d', 10, (isTaken) => seen.push(`d ${isTaken}`))
  clock.advance(500)
  assert.deepEqual(seen, [])
  elsewhere.release('b', 40)
  clock.advance(20)
  assert.deepEqual(seen, ['c true'])
  main.reclaim(2)
  clock.advance(20)
  assert.deepEqual(seen, ['c true', 'a true', 'd true'])
  assert.deepEqual([heldBytes.total, heldBytes.own, elsewhere.own], [60, 60, 0])
  assert.equal(clock.pendingTimers(), 0)
})

test('a budget of one thread does not poll', () => {
  const clock = createManualClock()
  const heldBytes = createHeldBytes({ bytesMax: 1, ownerBytesMax: 1, waitMs: 1000 }, clock)
  heldBytes.acquire('a', 1)
  const waiting = heldBytes.acquireLater('a', 1, () => {})
  assert.equal(clock.pendingTimers(), 1)
  waiting.cancel()
  assert.equal(clock.pendingTimers(), 0)
})
