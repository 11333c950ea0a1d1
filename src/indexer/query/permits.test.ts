import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createQueryPermits, type QueryPermitsOptions } from './permits.ts'

const STAYS = new AbortController().signal

function open(options: Partial<QueryPermitsOptions> = {}) {
  const clock = createManualClock()
  const all = { concurrent: 4, concurrentPerSubscription: 3, waitingMax: 3, waitSecondsMax: 30, ...options }
  const permits = createQueryPermits(all, { clock, metrics: { running: { set() {} } } })
  const granted: string[] = []
  const take = (who: string, disconnected = STAYS) =>
    permits.acquire(who, disconnected).then((permit) => {
      granted.push(who)
      return permit
    })
  return { clock, permits, granted, take }
}

test('a subscription over its own limit is refused, and the refusal names the limit', async () => {
  const { take } = open({ concurrent: 16 })
  for (let at = 0; at < 3; at++) await take('a')
  await assert.rejects(take('a'), {
    type: 'TOO_MANY_SIMULTANEOUS_QUERIES',
    message: /indexer\.query\.concurrentPerSubscription is 3/,
    retryAfterSeconds: 1,
  })
  await take('b')
})

test('the more permits a subscription holds, the more have to be free, so that two subscriptions cannot hold all', async () => {
  const { take, permits } = open()
  await take('a')
  const second = await take('a')
  const third = take('a')
  await take('b')
  await take('c')
  assert.deepEqual([permits.held, permits.waiting], [4, 1])
  second[Symbol.dispose]()
  assert.deepEqual([permits.held, permits.waiting], [3, 1])
  await take('d')
  assert.equal(permits.held, 4)
  third.catch(() => {})
})

test('waiting subscriptions are served in rotation, whatever their order of arrival', async () => {
  const { take, granted } = open({ concurrent: 1, waitingMax: 8 })
  const held: Disposable[] = [await take('a')]
  for (const who of ['a', 'a', 'b', 'c']) void take(who).then((permit) => held.push(permit))
  for (let at = 0; at < 4; at++) {
    held.pop()?.[Symbol.dispose]()
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.deepEqual(granted, ['a', 'b', 'c', 'a', 'a'])
})

test('the queue is limited by waitingMax, and the wait by waitSecondsMax', async () => {
  const { clock, take, permits } = open({ concurrent: 1, waitingMax: 2, waitSecondsMax: 5 })
  await take('a')
  const waiting = [take('b'), take('c')].map((one) =>
    assert.rejects(one, { type: 'TOO_MANY_SIMULTANEOUS_QUERIES', message: /indexer\.query\.concurrent is 1/ }),
  )
  await assert.rejects(take('d'), { message: /indexer\.query\.waitingMax is 2/ })
  clock.advance(5000)
  await Promise.all(waiting)
  assert.equal(permits.waiting, 0)
})

test('a client that disconnects leaves the queue, and a permit is released once', async () => {
  const { take, permits } = open({ concurrent: 2, concurrentPerSubscription: 1 })
  const first = await take('a')
  await take('b')
  const leaving = new AbortController()
  const left = assert.rejects(take('c', leaving.signal), { type: 'QUERY_WAS_CANCELLED' })
  leaving.abort()
  await left
  first[Symbol.dispose]()
  first[Symbol.dispose]()
  assert.deepEqual([permits.held, permits.waiting], [1, 0])
  await take('c')
  await assert.rejects(take('c'), /concurrentPerSubscription/)
})
