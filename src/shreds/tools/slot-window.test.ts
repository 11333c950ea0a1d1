import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSlotWindow } from './slot-window.ts'

const OPTIONS = { backSlots: 10, aheadSlots: 4 }

test('the first packet that passes every check sets the window and the version', () => {
  const window = createSlotWindow(OPTIONS)
  assert.equal(window.validate(100, 7, 0), 'current')
  window.moved(100, 7, 0)
  const verdicts = [89, 90, 100, 104, 105].map((slot) => window.validate(slot, 7, 1))
  assert.deepEqual(verdicts, ['late', 'current', 'current', 'current', 'ahead'])
  assert.equal(window.validate(100, 8, 1), 'version')
  window.moved(104, 7, 1)
  assert.deepEqual([window.validate(93, 7, 1), window.validate(108, 7, 1), window.newest()], ['late', 'current', 104])
})

test('a source that replays cannot move the window while news comes', () => {
  const window = createSlotWindow(OPTIONS)
  window.moved(1000, 7, 0)
  for (let ms = 0; ms < 20_000; ms++) {
    assert.equal(window.validate(500, 7, ms), 'late')
    assert.equal(window.validate(2 ** 52, 7, ms), 'ahead')
    if (ms % 400 === 0) window.moved(1000 + ms / 400, 7, ms)
  }
  assert.deepEqual([window.newest(), window.resets()], [1049, 0])
})

test('when nothing current has come for two seconds the middle of what comes is believed', () => {
  const window = createSlotWindow(OPTIONS)
  window.moved(1000, 7, 0)
  let ms = 2000
  for (let i = 0; i < 127; i++)
    assert.notEqual(window.validate(i % 20 === 0 ? 2 ** 50 : 5000 + (i % 3), 7, ms++), 'current')
  assert.equal(window.validate(5001, 7, ms), 'current')
  assert.deepEqual([window.newest(), window.resets(), window.version()], [5001, 1, 7])
})

test('a cluster that began anew has another version; one that was configured stays', () => {
  const learnt = createSlotWindow(OPTIONS)
  learnt.moved(1000, 7, 0)
  for (let i = 0; i < 128; i++) learnt.validate(3, 9, 5000)
  assert.deepEqual([learnt.version(), learnt.newest()], [9, 3])

  const fixed = createSlotWindow({ ...OPTIONS, version: 7 })
  fixed.moved(1000, 7, 0)
  for (let i = 0; i < 1000; i++) assert.equal(fixed.validate(3, 9, 5000 + i * 10), 'version')
  assert.deepEqual([fixed.version(), fixed.newest(), fixed.resets()], [7, 1000, 0])
})
