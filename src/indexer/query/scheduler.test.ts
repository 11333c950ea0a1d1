import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createQueryScheduler, type ScheduledQuery } from './scheduler.ts'

const STAYS = new AbortController().signal

/** Starts queries by name and records the order in which they start. */
function createStarter(scheduler = createQueryScheduler()) {
  const order: string[] = []
  const running = new Map<string, ScheduledQuery>()
  return {
    order,
    running,
    start(name: string, mode: 'shared' | 'exclusive' | number, disconnected: AbortSignal = STAYS): Promise<void> {
      return scheduler.start(mode === 'shared' ? 0 : mode === 'exclusive' ? 1 : mode, disconnected).then((query) => {
        order.push(name)
        running.set(name, query)
      })
    },
    async end(name: string): Promise<void> {
      running.get(name)?.[Symbol.dispose]()
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

test('an exclusive query waits for all before it, and all after it wait until it ends', async () => {
  const { order, start, end } = createStarter()
  await Promise.all([start('a', 'shared'), start('b', 'shared')])
  const rest = [start('x', 'exclusive'), start('c', 'shared'), start('y', 'exclusive'), start('d', 'shared')]
  await end('a')
  assert.deepEqual(order, ['a', 'b'])
  await end('b')
  assert.deepEqual(order, ['a', 'b', 'x'])
  await end('x')
  assert.deepEqual(order, ['a', 'b', 'x', 'c'])
  await end('c')
  await end('y')
  await Promise.all(rest)
  assert.deepEqual(order, ['a', 'b', 'x', 'c', 'y', 'd'])
})

test('others start beside an exclusive query after it shares, and it continues to run', async () => {
  const { order, running, start } = createStarter()
  await start('x', 'exclusive')
  const waiting = start('a', 'shared')
  assert.equal(running.get('x')?.isExclusive, true)
  running.get('x')?.share()
  await waiting
  assert.deepEqual([order, running.get('x')?.isExclusive], [['x', 'a'], false])
})

test('a client that disconnects while its query waits does not hold back those behind it', async () => {
  const { order, start } = createStarter()
  await start('a', 'shared')
  const leaving = new AbortController()
  const left = assert.rejects(start('x', 'exclusive', leaving.signal), { type: 'QUERY_WAS_CANCELLED' })
  const next = start('b', 'shared')
  leaving.abort()
  await Promise.all([left, next])
  assert.deepEqual(order, ['a', 'b'])
})

test('of adjacent exclusive queries in the queue the shortest starts first', async () => {
  const { order, start, end } = createStarter()
  await start('a', 'shared')
  const rest = [start('30', 30), start('10', 10), start('20', 20), start('b', 'shared'), start('5', 5)]
  for (const name of ['a', '10', '20', '30', 'b', '5']) await end(name)
  await Promise.all(rest)
  assert.deepEqual(order, ['a', '10', '20', '30', 'b', '5'])
})
