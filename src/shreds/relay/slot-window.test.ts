import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSlotWindow } from './slot-window.ts'

const OPTIONS = { backSlots: 10, aheadSlots: 4 }

test('sets window and version by the first packet that passes every check', () => {
  const window = createSlotWindow(OPTIONS)
  assert.equal(window.classify(100, 7, 0), 'current')
  window.advance(100, 7, 0)
  const verdicts = [89, 90, 100, 104, 105].map((slot) => window.classify(slot, 7, 1))
  assert.deepEqual(verdicts, ['late', 'current', 'current', 'current', 'ahead'])
  assert.equal(window.classify(100, 8, 1), 'version')
  window.advance(104, 7, 1)
  assert.deepEqual([window.classify(93, 7, 1), window.classify(108, 7, 1), window.newest()], ['late', 'current', 104])
})

test('a source that replays cannot move the window while current packets arrive', () => {
  const window = createSlotWindow(OPTIONS)
  window.advance(1000, 7, 0)
  for (let ms = 0; ms < 20_000; ms++) {
    assert.equal(window.classify(500, 7, ms), 'late')
    assert.equal(window.classify(2 ** 52, 7, ms), 'ahead')
    if (ms % 400 === 0) window.advance(1000 + ms / 400, 7, ms)
  }
  assert.deepEqual([window.newest(), window.resets()], [1049, 0])
})

test('moves to the median of the packets received when nothing current arrived for two seconds', () => {
  const window = createSlotWindow(OPTIONS)
  window.advance(1000, 7, 0)
  let ms = 2000
  for (let i = 0; i < 127; i++)
    assert.notEqual(window.classify(i % 20 === 0 ? 2 ** 50 : 5000 + (i % 3), 7, ms++), 'current')
  assert.equal(window.classify(5001, 7, ms), 'current')
  assert.deepEqual([window.newest(), window.resets(), window.version()], [5001, 1, 7])
})

test('adopts the version of a restarted cluster, but keeps a configured version', () => {
  const learnt = createSlotWindow(OPTIONS)
  learnt.advance(1000, 7, 0)
  for (let i = 0; i < 128; i++) learnt.classify(3, 9, 5000)
  assert.deepEqual([learnt.version(), learnt.newest()], [9, 3])

  const fixed = createSlotWindow({ ...OPTIONS, version: 7 })
  fixed.advance(1000, 7, 0)
  for (let i = 0; i < 1000; i++) assert.equal(fixed.classify(3, 9, 5000 + i * 10), 'version')
  assert.deepEqual([fixed.version(), fixed.newest(), fixed.resets()], [7, 1000, 0])
})

test('moves back to a slot and its version, but never to another version than the configured one', () => {
  const window = createSlotWindow({ backSlots: 64, aheadSlots: 32 })
  window.advance(5000, 7, 0)
  window.moveTo(100, 8, 0)
  assert.deepEqual([window.newest(), window.version(), window.verdictOf(101, 8)], [100, 8, 'current'])
  const configured = createSlotWindow({ backSlots: 64, aheadSlots: 32, version: 7 })
  configured.moveTo(100, 8, 0)
  assert.equal(configured.version(), 7)
})
