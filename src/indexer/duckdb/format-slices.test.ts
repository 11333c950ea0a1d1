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

test('other work of the thread gets several times as much time as the slices', async () => {
  let nowMs = 0
  const slices = createFormatSlices(() => nowMs, { sliceMs: 5 })
  let othersMs = 0
  let isOver = false
  async function others(): Promise<void> {
    while (!isOver) {
      nowMs += 10
      othersMs += 10
      await nextIteration()
    }
  }
  const running = others()
  const own = slices.open()
  let slicesMs = 0
  for (let slice = 0; slice < 10; slice++) {
    await own.yield()
    nowMs += 5
    slicesMs += 5
  }
  isOver = true
  await running
  assert.ok(othersMs >= 5 * slicesMs, `${othersMs} ms of others beside ${slicesMs} ms of slices`)
  assert.ok(othersMs <= 9 * slicesMs, `${othersMs} ms of others beside ${slicesMs} ms of slices`)
})
