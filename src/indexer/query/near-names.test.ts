import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearNames } from './near-names.ts'

test('two swapped letters are one mistake', () => {
  assert.deepEqual(nearNames('cuont', ['cost', 'count', 'fee'], 3), ['count', 'cost'])
})

test('the nearest name is first, in any case of its letters; names of the same distance are in order', () => {
  assert.deepEqual(nearNames('SLOTT', ['slots', 'slot', 'Slott', 'blockhash'], 3), ['Slott', 'slot', 'slots'])
  assert.deepEqual(nearNames('slott', ['slots', 'slot'], 1), ['slot'])
})
