import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
import { createBoundedReads } from './bounded-reads.ts'

const OPTIONS = { runningMax: 2, waitingMax: 3, perOwnerMax: 5, deadlineMs: 1000 }

/** A refusal does not wait for anything. */
const atOnce = <T>(read: Promise<T>): Promise<T | 'waits'> => Promise.race([read, Promise.resolve('waits' as const)])

function setUp() {
  const clock = createManualClock()
  const reads = createBoundedReads(OPTIONS, clock)
  const started: PromiseWithResolvers<number>[] = []
  const read = (_at?: unknown, owner: unknown = 'one') =>
    reads.run(String(owner), () => {
      const task = Promise.withResolvers<number>()
      started.push(task)
      return task.promise
    })
  return { clock, reads, started, read }
}

test('runs so many at a time, in order, and refuses what would wait beyond the limit', async () => {
  const { clock, started, read } = setUp()
  const all = Array.from({ length: 6 }, (_, at) => read(at, at))
  assert.deepEqual(await all[5], { ok: false, reason: 'busy' })
  assert.equal(started.length, 2)
  started[0]?.resolve(7)
  assert.deepEqual(await all[0], { ok: true, value: 7 })
  await clock.advanceAsync(0)
  assert.equal(started.length, 3)
  for (let at = 1; at < 5; at++) {
    started[at]?.resolve(at)
    assert.deepEqual(await all[at], { ok: true, value: at })
    await clock.advanceAsync(0)
  }
  assert.equal(clock.pendingTimers(), 0)
})

test('a store that does not respond: everything is late by the deadline, and no more is read than may run', async () => {
  const { clock, started, read } = setUp()
  const first = Array.from({ length: 5 }, read)
  await clock.advanceAsync(OPTIONS.deadlineMs)
  for (const one of first) assert.deepEqual(await one, { ok: false, reason: 'late' })
  const more = Array.from({ length: 4 }, read)
  assert.deepEqual(await more[3], { ok: false, reason: 'busy' })
  assert.equal(started.length, OPTIONS.runningMax)
  started[0]?.resolve(1)
  await clock.advanceAsync(0)
  assert.equal(started.length, 3)
  started[2]?.resolve(3)
  assert.deepEqual(await more[0], { ok: true, value: 3 })
})

test('an error is passed on, and the next one is read', async () => {
  const { clock, started, reads, read } = setUp()
  await assert.rejects(
    reads.run('one', () => Promise.reject(new Error('damaged'))),
    /damaged/,
  )
  const next = read()
  started[0]?.resolve(2)
  assert.deepEqual(await next, { ok: true, value: 2 })
  await clock.advanceAsync(0)
  assert.equal(clock.pendingTimers(), 0)
})

test('one owner takes its own places and leaves the others, until its reads end', async () => {
  const clock = createManualClock()
  const reads = createBoundedReads({ ...OPTIONS, waitingMax: 100, perOwnerMax: 3 }, clock)
  const started: PromiseWithResolvers<string>[] = []
  const read = (owner: string) =>
    reads.run(owner, () => {
      const task = Promise.withResolvers<string>()
      started.push(task)
      return task.promise
    })
  const greedy = Array.from({ length: 10 }, () => read('greedy'))
  for (const refused of greedy.slice(3)) assert.deepEqual(await atOnce(refused), { ok: false, reason: 'busy' })
  const modest = read('modest')
  // One that is late while it waits gives its place back, one that is late while it runs does not.
  await clock.advanceAsync(OPTIONS.deadlineMs)
  for (const late of [...greedy.slice(0, 3), modest]) assert.deepEqual(await late, { ok: false, reason: 'late' })
  assert.equal(started.length, OPTIONS.runningMax)
  const [third, fourth] = [read('greedy'), read('greedy')]
  assert.deepEqual(await atOnce(fourth), { ok: false, reason: 'busy' })
  for (const task of started) task.resolve('first')
  await clock.advanceAsync(0)
  started[2]?.resolve('third')
  assert.deepEqual(await third, { ok: true, value: 'third' })
  await clock.advanceAsync(0)
  const again = Array.from({ length: 3 }, () => read('greedy'))
  for (let rounds = 0; rounds < 2; rounds++) {
    for (const task of started) task.resolve('again')
    await clock.advanceAsync(0)
  }
  for (const one of again) assert.deepEqual(await one, { ok: true, value: 'again' })
  assert.equal(clock.pendingTimers(), 0)
})
