import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Clock } from '../../core/clock.ts'
import type { WaitingWork, Work } from '../../core/work.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { createWorkQueue } from './work-queue.ts'

const NEVER = new AbortController().signal

/** Each step takes two milliseconds; pauses are recorded and take no time. */
function steppingClock(): { clock: Clock; spend(): void; pauses: number[] } {
  let nowMs = 0
  const pauses: number[] = []
  const clock: Clock = {
    ...systemClock,
    monotonicMs: () => nowMs,
    setTimer(delayMs, run) {
      pauses.push(delayMs)
      return systemClock.setTimer(0, run)
    },
  }
  return { clock, pauses, spend: () => void (nowMs += 2) }
}

function* steps(count: number, note: (step: number) => void): Work<number> {
  for (let step = 1; step <= count; step++) {
    note(step)
    yield
  }
  return count
}

/** Work that goes on until `end`, with the number of all its steps. */
function createEndless(spend: () => void) {
  let isOver = false
  const long = {
    steps: 0,
    *work(): Work<void> {
      while (!isOver) {
        spend()
        long.steps += 1
        yield
      }
    },
    end: () => void (isOver = true),
  }
  return long
}

const turn = (): Promise<void> => new Promise((done) => setImmediate(done))

describe('the work queue', () => {
  test('serves owners round-robin by slice and runs the jobs of one owner sequentially', async () => {
    const { clock, spend } = steppingClock()
    const queue = createWorkQueue(clock)
    const ran: string[] = []
    const work = (name: string, count: number) =>
      steps(count, () => {
        spend()
        ran.push(name)
      })
    const all = Promise.all([
      queue.run('a', work('a1', 12), NEVER),
      queue.run('a', work('a2', 12), NEVER),
      queue.run('b', work('b1', 12), NEVER),
    ])
    assert.deepEqual(await all, [12, 12, 12])
    const order = ran.filter((name, at) => name !== ran[at - 1])
    // b does not wait for both jobs of a, and a2 starts only after a1 has ended.
    assert(ran.indexOf('b1') < ran.lastIndexOf('a1'), order.join(' '))
    assert(ran.indexOf('a2') > ran.lastIndexOf('a1'), order.join(' '))
    assert(ran.lastIndexOf('b1') < ran.lastIndexOf('a2'), order.join(' '))
  })

  test('after a slice it pauses as long as it worked, and other events run', async () => {
    const { clock, spend, pauses } = steppingClock()
    const queue = createWorkQueue(clock)
    let turns = 0
    let isOver = false
    const count = (): void => {
      turns += 1
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    await queue.run('a', steps(30, spend), NEVER)
    isOver = true
    assert(pauses.length >= 8 && pauses.every((ms) => ms >= 5 && ms <= 8), pauses.join(' '))
    assert(turns >= pauses.length, `${turns} turns`)
  })

  test('short work is done within a few slices, whatever eight owners of long work do', async () => {
    const { clock, spend } = steppingClock()
    const queue = createWorkQueue(clock)
    const long = createEndless(spend)
    const all = Array.from({ length: 12 }, (_, owner) => queue.run(`long ${owner}`, long.work(), NEVER))
    while (long.steps < 100) await turn()
    for (let call = 0; call < 20; call++) {
      const before = long.steps
      await queue.run(`short ${call}`, steps(2, spend), NEVER)
      // A slice has three steps.
      assert(long.steps - before <= 6, `${long.steps - before} steps of long work before call ${call}`)
    }
    long.end()
    await Promise.all(all)
  })

  test('many new owners do not stop long work: it gets every other slice', async () => {
    const { clock, spend } = steppingClock()
    const queue = createWorkQueue(clock)
    let otherSteps = 0
    const long = queue.run('long', steps(150, spend), NEVER)
    const others = Array.from({ length: 500 }, (_, owner) =>
      queue.run(
        `new ${owner}`,
        steps(2, () => {
          spend()
          otherSteps += 1
        }),
        NEVER,
      ),
    )
    await long
    assert(otherSteps >= 120 && otherSteps <= 180, `${otherSteps} steps`)
    await Promise.all(others)
  })

  test('goes on with at most eight jobs after their first slice, and starts at most 64', async () => {
    const { clock, spend } = steppingClock()
    const queue = createWorkQueue(clock)
    const ran = new Map<number, number>()
    let [mostStarted, mostLong] = [0, 0]
    function* work(owner: number): Work<void> {
      for (let step = 1; step <= 20; step++) {
        spend()
        ran.set(owner, step)
        mostStarted = Math.max(mostStarted, ran.size)
        // Two steps at the end of a slice, then three in another one.
        mostLong = Math.max(mostLong, [...ran.values()].filter((count) => count > 5).length)
        yield
      }
      ran.delete(owner)
    }
    await Promise.all(Array.from({ length: 100 }, (_, owner) => queue.run(`${owner}`, work(owner), NEVER)))
    assert.deepEqual([mostStarted, mostLong], [64, 8])
  })

  test('long work that is stopped ends also while it is not served', async () => {
    const { clock, spend } = steppingClock()
    const queue = createWorkQueue(clock)
    const long = createEndless(spend)
    const all = Array.from({ length: 8 }, (_, owner) => queue.run(`long ${owner}`, long.work(), NEVER))
    const leaving = new AbortController()
    const ninth = queue.run('ninth', long.work(), leaving.signal)
    while (long.steps < 100) await turn()
    leaving.abort()
    assert.equal(await ninth, undefined)
    long.end()
    await Promise.all(all)
  })

  test('a stopped job runs no further step and frees its place; a job that throws rejects only its own promise', async () => {
    const queue = createWorkQueue(systemClock)
    const leaving = new AbortController()
    let last = 0
    let isCleaned = false
    function* endless(): Work<void> {
      try {
        for (;;) {
          last += 1
          if (last === 3) leaving.abort()
          yield
        }
      } finally {
        isCleaned = true
      }
    }
    function* broken(): Work<void> {
      yield
      throw new Error('as planned')
    }
    const [stopped, thrown, good] = await Promise.allSettled([
      queue.run('a', endless(), leaving.signal),
      queue.run('a', broken(), NEVER),
      queue.run(
        'a',
        steps(2, () => {}),
        NEVER,
      ),
    ])
    assert.deepEqual([stopped.status, thrown.status, good.status], ['fulfilled', 'rejected', 'fulfilled'])
    assert.deepEqual([last, isCleaned], [3, true])
    assert.equal(await queue.run('a', endless(), AbortSignal.abort()), undefined)
    assert.equal(last, 3, 'a job aborted before it started runs no step')
  })

  test('work that waits leaves its turn to others, uses no time, and continues when the wait is over', async () => {
    const { clock } = steppingClock()
    const queue = createWorkQueue(clock)
    const { promise, resolve } = Promise.withResolvers<void>()
    let begun = 0
    function* waiting(): WaitingWork<string> {
      begun += 1
      yield promise
      begun += 1
      return 'read'
    }
    const read = queue.run('a', waiting(), NEVER)
    assert.equal(
      await queue.run(
        'b',
        steps(3, () => {}),
        NEVER,
      ),
      3,
      'another owner',
    )
    const second = queue.run(
      'a',
      steps(1, () => {}),
      NEVER,
    )
    await turn()
    assert.equal(begun, 1)
    resolve()
    assert.deepEqual(await Promise.all([read, second]), ['read', 1])
    // All started owners wait: a new one is served all the same.
    const never = Array.from({ length: 7 }, (_, at) => queue.run(`w${at}`, waitFor(new Promise(() => {})), NEVER))
    assert.equal(
      await queue.run(
        'c',
        steps(2, () => {}),
        NEVER,
      ),
      2,
    )
    assert.equal(never.length, 7)
  })
})

function* waitFor(promise: Promise<void>): WaitingWork<void> {
  yield promise
}
