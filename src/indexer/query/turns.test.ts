import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createQueryTurns, type QueryTurn } from './turns.ts'

const STAYS = new AbortController().signal

/** Enters and notes it. */
function enterer(turns = createQueryTurns()) {
  const order: string[] = []
  const held = new Map<string, QueryTurn>()
  return {
    order,
    held,
    enter(name: string, mode: 'shared' | 'alone' | number, left: AbortSignal = STAYS): Promise<void> {
      return turns.enter(mode === 'shared' ? 0 : mode === 'alone' ? 1 : mode, left).then((turn) => {
        order.push(name)
        held.set(name, turn)
      })
    },
    async leave(name: string): Promise<void> {
      held.get(name)?.[Symbol.dispose]()
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

test('who runs alone waits for all before it, and all behind it wait until it is over', async () => {
  const { order, enter, leave } = enterer()
  await Promise.all([enter('a', 'shared'), enter('b', 'shared')])
  const rest = [enter('alone', 'alone'), enter('c', 'shared'), enter('also alone', 'alone'), enter('d', 'shared')]
  await leave('a')
  assert.deepEqual(order, ['a', 'b'])
  await leave('b')
  assert.deepEqual(order, ['a', 'b', 'alone'])
  await leave('alone')
  assert.deepEqual(order, ['a', 'b', 'alone', 'c'])
  await leave('c')
  await leave('also alone')
  await Promise.all(rest)
  assert.deepEqual(order, ['a', 'b', 'alone', 'c', 'also alone', 'd'])
})

test('who has been alone for long enough lets others in and goes on', async () => {
  const { order, held, enter } = enterer()
  await enter('alone', 'alone')
  const waiting = enter('a', 'shared')
  assert.equal(held.get('alone')?.isAlone, true)
  held.get('alone')?.share()
  await waiting
  assert.deepEqual([order, held.get('alone')?.isAlone], [['alone', 'a'], false])
})

test('who leaves while it waits does not hold back those behind it', async () => {
  const { order, enter } = enterer()
  await enter('a', 'shared')
  const leaving = new AbortController()
  const left = assert.rejects(enter('alone', 'alone', leaving.signal), { type: 'QUERY_WAS_CANCELLED' })
  const next = enter('b', 'shared')
  leaving.abort()
  await Promise.all([left, next])
  assert.deepEqual(order, ['a', 'b'])
})

test('of those that wait to be alone the shortest is first, up to one that does not', async () => {
  const { order, enter, leave } = enterer()
  await enter('a', 'shared')
  const rest = [enter('30', 30), enter('10', 10), enter('20', 20), enter('b', 'shared'), enter('5', 5)]
  for (const name of ['a', '10', '20', '30', 'b', '5']) await leave(name)
  await Promise.all(rest)
  assert.deepEqual(order, ['a', '10', '20', '30', 'b', '5'])
})
