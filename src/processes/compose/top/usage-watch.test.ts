import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UsageRow } from '../../../access/store/model.ts'
import type { AccessStore } from '../../../access/store/store.ts'
import { createManualClock } from '../../../core/clock.ts'
import { watchUsage } from './usage-watch.ts'

const row = (subscriptionId: string, calls: number): UsageRow => ({
  subscriptionId,
  hour: 0,
  interface: 'rpc',
  calls,
  units: calls * 2,
  refused: 1,
  bytes: calls * 10,
})

function open() {
  const clock = createManualClock(0)
  const state = { isFull: false }
  const store = {
    name: 'store',
    addUsage: () => (state.isFull ? Promise.reject(new Error('full')) : Promise.resolve()),
  } as unknown as AccessStore
  return { clock, state, watch: watchUsage(store, { clock }) }
}

test('sums the written usage, newest first, and drops inactive subscriptions', async () => {
  const { clock, watch } = open()
  await watch.store.addUsage([row('a', 1), row('b', 5)], new Map())
  clock.advance(30_000)
  await watch.store.addUsage([row('a', 2)], new Map())
  assert.deepEqual(
    watch.active().map(({ subscriptionId: id, calls, units, refused, bytes }) => [id, calls, units, refused, bytes]),
    [
      ['a', 3, 6, 2, 30],
      ['b', 5, 10, 1, 50],
    ],
  )
  clock.advance(31_000)
  assert.deepEqual(
    watch.active().map(({ subscriptionId }) => subscriptionId),
    ['a'],
  )
  assert.equal(watch.store.name, 'store')
})

test('usage that the store refused is not counted, because it is written again', async () => {
  const { state, watch } = open()
  state.isFull = true
  await assert.rejects(watch.store.addUsage([row('a', 1)], new Map()))
  assert.equal(watch.active().length, 0)
  state.isFull = false
  await watch.store.addUsage([row('a', 1)], new Map())
  assert.equal(watch.active()[0]?.calls, 1)
})

test('tracks at most a thousand subscriptions', async () => {
  const { watch } = open()
  await watch.store.addUsage(
    Array.from({ length: 1500 }, (_, at) => row(`s${at}`, 1)),
    new Map(),
  )
  assert.equal(watch.active().length, 1000)
  assert.equal(watch.active()[0]?.subscriptionId, 's1499')
})
