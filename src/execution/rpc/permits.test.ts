import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LimitFailure } from './failure.ts'
import { createRpcPermits } from './permits.ts'

const refused = (limit: string) => (error: unknown) => error instanceof LimitFailure && error.limit === limit

test('limits requests and unread bytes per client and in total, and releases them', () => {
  const permits = createRpcPermits({ perClientMax: 2, inAllMax: 3, unreadPerClientMax: 100, unreadInAllMax: 150 })
  const [one, two] = [permits.acquire('a'), permits.acquire('a')]
  assert.throws(() => permits.acquire('a'), refused('requestsPerClient'))
  const other = permits.acquire('b')
  assert.throws(() => permits.acquire('c'), refused('requestsInAll'))
  one.holdResponse(90)
  assert.throws(() => two.holdResponse(11), refused('unreadBytes'))
  assert.throws(() => other.holdResponse(61), refused('unreadBytes'))
  other.holdResponse(60)
  assert.deepEqual([permits.open, permits.unreadBytes], [3, 150])
  one[Symbol.dispose]()
  one[Symbol.dispose]()
  assert.deepEqual([permits.open, permits.unreadBytes], [2, 60])
  two.holdResponse(90)
  for (const permit of [two, other]) permit[Symbol.dispose]()
  assert.deepEqual([permits.open, permits.unreadBytes], [0, 0])
})
