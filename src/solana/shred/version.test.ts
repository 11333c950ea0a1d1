import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shredVersionOf } from './version.ts'

test('computes the same version as the validator', () => {
  assert.equal(shredVersionOf(new Uint8Array(32)), 1)
  const hash = [
    180, 194, 54, 239, 216, 26, 164, 170, 3, 72, 104, 87, 32, 189, 12, 254, 9, 103, 99, 155, 117, 158, 241, 0, 95, 128,
    64, 174, 42, 158, 205, 26,
  ]
  assert.equal(shredVersionOf(Uint8Array.from(hash)), 44810)
})

test('the largest version does not overflow to zero', () => {
  const hash = new Uint8Array(32)
  hash.set([0xff, 0xff])
  assert.equal(shredVersionOf(hash), 0xffff)
})
