import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LimitFailure } from './failure.ts'
import { createRpcPermits } from './permits.ts'

const refused = (limit: string) => (error: unknown) => error instanceof LimitFailure && error.limit === limit

const OPTIONS = { perClientMax: 2, inAllMax: 9, unreadPerClientMax: 100, unreadInAllMax: 150, smallBytesMax: 5 }
const stays = (): void => assert.fail('closed')

test('limits requests and unread bytes per client and requests in total, and releases them', () => {
  const permits = createRpcPermits({ ...OPTIONS, inAllMax: 3 })
  const [one, two] = [permits.acquire('a'), permits.acquire('a')]
  assert.throws(() => permits.acquire('a'), refused('requestsPerClient'))
  const other = permits.acquire('b')
  assert.throws(() => permits.acquire('c'), refused('requestsInAll'))
  one.holdResponse(90, stays)
  assert.throws(() => two.holdResponse(11, stays), refused('unreadBytes'))
  other.holdResponse(60, stays)
  assert.deepEqual([permits.open, permits.unreadBytes], [3, 150])
  one[Symbol.dispose]()
  one[Symbol.dispose]()
  assert.deepEqual([permits.open, permits.unreadBytes], [2, 60])
  two.holdResponse(90, stays)
  for (const permit of [two, other]) permit[Symbol.dispose]()
  assert.deepEqual([permits.open, permits.unreadBytes], [0, 0])
})

test('requests whose bodies do not arrive are closed for others, first those of the client with the most', () => {
  const permits = createRpcPermits({ ...OPTIONS, inAllMax: 4 })
  const closed: string[] = []
  const open = (owner: string, name: string) => permits.acquire(owner, () => closed.push(name))
  const slow = open('b', 'b1')
  open('a', 'a1')
  const read = open('a', 'a2')
  read.bodyRead()
  open('c', 'c1').bodyRead()
  permits.acquire('d')
  assert.deepEqual([closed, permits.open], [['a1'], 4])
  permits.acquire('d')
  assert.deepEqual([closed, permits.open], [['a1', 'b1'], 4])
  assert.throws(() => open('e', 'e1'), refused('requestsInAll'), 'all bodies have arrived')
  slow[Symbol.dispose]()
  assert.equal(permits.open, 4, 'a closed request is counted no longer')
  read[Symbol.dispose]()
  open('e', 'e1')
  assert.equal(permits.open, 4)
})

test('a small response is never refused, and closes no other', () => {
  const permits = createRpcPermits(OPTIONS)
  permits.acquire('a').holdResponse(99, stays)
  permits.acquire('a').holdResponse(5, stays)
  permits.acquire('b').holdResponse(46, stays)
  permits.acquire('c').holdResponse(5, stays)
  assert.equal(permits.unreadBytes, 155)
})

test('over the total, the longest-held responses of the clients with the most unread bytes are closed', () => {
  const permits = createRpcPermits(OPTIONS)
  const closed: string[] = []
  const hold = (owner: string, bytes: number, name: string) => {
    const permit = permits.acquire(owner)
    permit.holdResponse(bytes, () => closed.push(name))
    return permit
  }
  hold('reader', 20, 'reader')
  const first = hold('a', 30, 'a1')
  hold('b', 45, 'b1')
  hold('a', 30, 'a2')
  hold('new', 70, 'new')
  assert.deepEqual(closed, ['a1', 'b1'], 'a has 60 bytes, then b has 45')
  assert.equal(permits.unreadBytes, 120)
  first[Symbol.dispose]()
  assert.equal(permits.unreadBytes, 120, 'a closed response is counted no longer')
})
