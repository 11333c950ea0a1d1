import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TpsFold } from './tps.ts'

test('the window has two full blocks and half of the newest, and no value before it is whole', () => {
  const tps = new TpsFold()
  assert.equal(tps.value, undefined)
  assert.deepEqual(
    [100, 200, 300, 1, 0, 0, 0, 7].map((txns, at) => tps.add(at + 1, txns)),
    [undefined, undefined, 100 + 200 + 150, 200 + 300 + 0, 300 + 1 + 0, 1, 0, 3],
  )
  assert.equal(tps.value, 3)
  tps.reset()
  assert.equal(tps.value, undefined)
  assert.deepEqual(
    [9, 10, 11].map((number) => tps.add(number, 100)),
    [undefined, undefined, 250],
  )
})

test('a number counts once, with its latest proposal', () => {
  const tps = new TpsFold()
  for (const number of [1, 2]) tps.add(number, 100)
  assert.equal(tps.add(3, 100), 100 + 100 + 50)
  assert.equal(tps.add(3, 40), 100 + 100 + 20, 'another proposal of the newest number')
  assert.equal(tps.add(4, 10), 100 + 40 + 5)
  assert.equal(tps.add(3, 60), 100 + 100 + 30, 'a late proposal of the number before: its own window')
  assert.equal(tps.add(5, 10), 60 + 10 + 5)
})

test('a number that is missing or was not seen to its end leaves no value for the windows that contain it', () => {
  const tps = new TpsFold()
  for (const number of [1, 2, 3]) tps.add(number, 10)
  assert.deepEqual(
    [5, 6, 7].map((number) => tps.add(number, 10)),
    [undefined, undefined, 25],
  )
  tps.forget(7)
  assert.deepEqual(
    [8, 9, 10].map((number) => tps.add(number, 10)),
    [undefined, undefined, 25],
  )
})

test('counts of old numbers are not kept', () => {
  const tps = new TpsFold()
  for (let number = 1; number <= 1000; number++) tps.add(number, 1)
  assert.equal(tps.add(999, 1), 2)
  assert.equal(tps.add(3, 1), undefined)
})
