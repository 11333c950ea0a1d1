import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { settledWithin, systemClock } from './clock.ts'

describe('settledWithin', () => {
  test('ends with the promise, and leaves no timer', async () => {
    const clock = createManualClock()
    const { promise, resolve } = Promise.withResolvers<string>()
    const waiting = settledWithin(promise, 1000, clock)
    assert.equal(clock.pendingTimers(), 1)
    resolve('done')
    await waiting
    assert.equal(clock.pendingTimers(), 0)
  })

  test('ends at the timeout, and not before', async () => {
    const clock = createManualClock()
    let isOver = false
    const waiting = settledWithin(new Promise(() => {}), 1000, clock).then(() => {
      isOver = true
    })
    await clock.advanceAsync(999)
    assert.equal(isOver, false)
    await clock.advanceAsync(1)
    assert.equal(isOver, true)
    await waiting
    assert.equal(clock.pendingTimers(), 0)
  })

  test('rejects as the promise does, and leaves no timer', async () => {
    const clock = createManualClock()
    const failed = Promise.reject(new Error('disk full'))
    await assert.rejects(settledWithin(failed, 1000, clock), /disk full/)
    assert.equal(clock.pendingTimers(), 0)
  })

  test('a rejection after the timeout is handled', async (t) => {
    const clock = createManualClock()
    const unhandled = t.mock.fn()
    process.once('unhandledRejection', unhandled)
    t.after(() => process.off('unhandledRejection', unhandled))
    const { promise, reject } = Promise.withResolvers<void>()
    const waiting = settledWithin(promise, 1000, clock)
    clock.advance(1000)
    await waiting
    reject(new Error('disk full'))
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(unhandled.mock.callCount(), 0)
  })

  test('without a promise there is nothing to wait for', async () => {
    const clock = createManualClock()
    await settledWithin(undefined, 1000, clock)
    assert.equal(clock.pendingTimers(), 0)
  })
})

describe('systemClock', () => {
  /** The longest delay of one timer of Node. */
  const NODE_MS_MAX = 2 ** 31 - 1

  test('a delay of more than 24.8 days is kept, and the timer fires once', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const run = t.mock.fn()
    systemClock.setTimer(2 ** 31 + 1000, run)
    t.mock.timers.tick(NODE_MS_MAX)
    assert.equal(run.mock.callCount(), 0)
    t.mock.timers.tick(1000)
    assert.equal(run.mock.callCount(), 0)
    t.mock.timers.tick(1)
    assert.equal(run.mock.callCount(), 1)
    t.mock.timers.tick(NODE_MS_MAX)
    assert.equal(run.mock.callCount(), 1)
  })

  test('such a timer can be cancelled at any time', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const run = t.mock.fn()
    const timers = [0, 1].map(() => systemClock.setTimer(3 * NODE_MS_MAX, run))
    timers[0]?.cancel()
    t.mock.timers.tick(NODE_MS_MAX + 1)
    timers[1]?.cancel()
    t.mock.timers.tick(NODE_MS_MAX)
    t.mock.timers.tick(NODE_MS_MAX)
    assert.equal(run.mock.callCount(), 0)
  })
})
