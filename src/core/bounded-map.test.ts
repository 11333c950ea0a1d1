import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setBounded } from './bounded-map.ts'

test('holds up to the maximum, then the oldest entry makes room', () => {
  const map = new Map<string, number>()
  for (const [at, key] of ['a', 'b', 'c'].entries()) setBounded(map, key, at, 3)
  assert.deepEqual([...map], Object.entries({ a: 0, b: 1, c: 2 }))
  setBounded(map, 'd', 3, 3)
  assert.deepEqual([...map], Object.entries({ b: 1, c: 2, d: 3 }))
})

test('a new value of a known key removes nothing and keeps its position', () => {
  const map = new Map([
    ['a', 0],
    ['b', 1],
  ])
  setBounded(map, 'a', 7, 2)
  assert.deepEqual([...map], Object.entries({ a: 7, b: 1 }))
  setBounded(map, 'c', 2, 2)
  assert.deepEqual([...map.keys()], ['b', 'c'])
})
