import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { createFormatSlices } from './format-slices.ts'

test('slices are granted in rotation, and the event loop runs between any two', async () => {
  let nowMs = 0
  const slices = createFormatSlices(() => nowMs, { sliceMs: 5 })
  const order: string[] = []
  let isOver = false
  async function work(name: string, count: number): Promise<void> {
    const own = slices.open()
    for (let at = 0; at < count; at++) {
      nowMs += 5
      assert.equal(own.isSpent(), true)
      await own.yield()
      assert.equal(own.isSpent(), false)
      order.push(name)
    }
  }
  async function loop(): Promise<void> {
    while (!isOver) {
      order.push('loop')
      await nextIteration()
    }
  }
  const looping = loop()
  await Promise.all([work('a', 3), work('b', 3), work('c', 1)])
  isOver = true
  await looping
  assert.equal(order.filter((name) => name !== 'loop').join(''), 'abcabab')
  for (const [at, name] of order.entries())
    assert.ok(name === 'loop' || order[at - 1] === 'loop', `two slices in one iteration: ${order.join(' ')}`)
  assert.equal(slices.granted, 7)
})

test('while blocks are ingested there is a pause after each slice, until ingest is over', async () => {
  let nowMs = 0
  let ingestUntilMs = 200
  const slices = createFormatSlices(() => nowMs, {
    sliceMs: 5,
    isIngesting: () => nowMs < ingestUntilMs,
    // Timers on the clock of the test.
    setTimer(run, ms) {
      nowMs += ms
      setImmediate(run)
    },
  })
  const own = slices.open()
  const startsMs: number[] = []
  for (let slice = 0; slice < 8; slice++) {
    nowMs += 5
    await own.yield()
    startsMs.push(nowMs)
  }
  assert.deepEqual(startsMs, [5, 40, 75, 110, 145, 180, 200, 205])
  ingestUntilMs = Infinity
  await own.yield()
  assert.equal(nowMs, 240)
})
