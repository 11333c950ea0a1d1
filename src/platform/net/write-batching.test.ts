import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type BatchWriter, createWriteBatching } from './write-batching.ts'

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('writes at the end of the turn, in order; writers added meanwhile in the next turn', async () => {
  const writes = createWriteBatching()
  const written: string[] = []
  const writer = (name: string, then?: BatchWriter): BatchWriter => ({
    writeNow() {
      written.push(name)
      if (then !== undefined) writes.add(then)
    },
  })
  writes.add(writer('a', writer('c')))
  await Promise.resolve()
  writes.add(writer('b'))
  assert.deepEqual(written, [])
  await nextTurn()
  assert.deepEqual(written, ['a', 'b'])
  await nextTurn()
  assert.deepEqual(written, ['a', 'b', 'c'])
  await nextTurn()
  writes.add(writer('d'))
  await nextTurn()
  assert.deepEqual(written, ['a', 'b', 'c', 'd'])
})
