import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createBoundedQueue } from './bounded-queue.ts'
import { seedFor } from './test-seed.ts'

test('refuses at the bound of items and of weight', () => {
  const queue = createBoundedQueue<string>({ itemsMax: 3, weightMax: 5, weightOf: (text) => text.length })
  assert.equal(queue.offer('aaa'), true)
  assert.equal(queue.offer('bbb'), false)
  assert.equal(queue.offer('bb'), true)
  assert.equal(queue.offer(''), true)
  assert.equal(queue.offer(''), false)
  assert.deepEqual([...queue], ['aaa', 'bb', ''])
  assert.equal(queue.weight, 5)
})

test('pushDroppingOldest returns how many items were dropped', () => {
  const queue = createBoundedQueue<number>({ itemsMax: 10, weightMax: 10, weightOf: (n) => n })
  for (const n of [4, 4, 2]) assert.equal(queue.pushDroppingOldest(n), 0)
  assert.equal(queue.pushDroppingOldest(7), 2)
  assert.deepEqual([...queue], [2, 7])
  assert.equal(queue.pushDroppingOldest(11), 1)
  assert.deepEqual([...queue], [2, 7])
})

test('behaves like an array under any sequence of calls', () => {
  const command = fc.oneof(fc.constant('shift' as const), fc.integer({ min: 0, max: 9 }))
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.array(command, { maxLength: 300 }), (itemsMax, commands) => {
      const queue = createBoundedQueue<number>({ itemsMax, weightOf: (n) => n })
      const model: number[] = []
      for (const step of commands) {
        if (step === 'shift') assert.equal(queue.shift(), model.shift())
        else {
          const hasRoom = model.length < itemsMax
          if (hasRoom) model.push(step)
          assert.equal(queue.offer(step), hasRoom)
        }
        assert.equal(queue.size, model.length)
        assert.equal(
          queue.weight,
          model.reduce((sum, n) => sum + n, 0),
        )
        assert.equal(queue.peek(), model[0])
      }
      assert.deepEqual([...queue], model)
    }),
    seedFor('bounded-queue'),
  )
})

test('clear empties it', () => {
  const queue = createBoundedQueue<number>({ itemsMax: 2 })
  queue.offer(1)
  queue.clear()
  assert.equal(queue.size, 0)
  assert.equal(queue.shift(), undefined)
})
