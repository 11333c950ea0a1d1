import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TpsFold } from './tps.ts'

test('the window has two full blocks and half of the newest', () => {
  const tps = new TpsFold()
  assert.equal(tps.value, 0)
  assert.deepEqual(
    [100, 200, 300, 1, 0, 0, 0, 7].map((txns) => tps.add(txns)),
    [50, 100 + 100, 100 + 200 + 150, 200 + 300 + 0, 300 + 1 + 0, 1, 0, 3],
  )
  assert.equal(tps.value, 3)
  tps.reset()
  assert.equal(tps.value, 0)
  assert.equal(tps.add(100), 50)
})
