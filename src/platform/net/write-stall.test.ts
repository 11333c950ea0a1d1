import assert from 'node:assert/strict'
import { duplexPair } from 'node:stream'
import { test } from 'node:test'
import { createStallWatch } from './write-stall.ts'

test('destroys only streams without progress for stallMs', () => {
  const watch = createStallWatch({ stallMs: 1000, pendingBytesMax: 1e9 })
  const pairs = { idle: duplexPair(), slow: duplexPair(), stalled: duplexPair(), forgotten: duplexPair() }
  for (const [, near] of Object.values(pairs)) watch.watch(near)
  watch.forget(pairs.forgotten[1])
  for (const name of ['slow', 'stalled', 'forgotten'] as const) {
    for (let pieces = 0; pieces < 20; pieces++) pairs[name][1].write(Buffer.alloc(60_000))
    assert(pairs[name][1].writableLength > 0)
  }
  for (let nowMs = 0; nowMs <= 3000; nowMs += 500) {
    watch.sweep(nowMs)
    pairs.slow[0].read()
  }
  const isCut = Object.fromEntries(Object.entries(pairs).map(([name, [, near]]) => [name, near.destroyed]))
  assert.deepEqual(isCut, { idle: false, slow: false, stalled: true, forgotten: false })
})

test('over the total, destroys those that hold most, however long the others have been connected', () => {
  const watch = createStallWatch({ stallMs: 100_000, pendingBytesMax: 250_000 })
  const sizes = [20_000, 20_000, 100_000, 80_000, 100_000]
  const streams = sizes.map((bytes, at) => {
    const [, stream] = duplexPair()
    watch.watch(stream)
    for (let left = bytes; left > 0; left -= 20_000) stream.write(Buffer.alloc(20_000))
    assert.equal(stream.writableLength, bytes)
    watch.sweep(at)
    return stream
  })
  assert.deepEqual(
    streams.map(({ destroyed }) => destroyed),
    [false, false, true, false, false],
  )
})

test('over the total, destroys those without progress for longest, and no more than needed', () => {
  const watch = createStallWatch({ stallMs: 100_000, pendingBytesMax: 250_000 })
  const streams = Array.from({ length: 4 }, () => duplexPair()[1])
  for (const [at, stream] of streams.entries()) {
    watch.watch(stream)
    for (let pieces = 0; pieces < 2; pieces++) stream.write(Buffer.alloc(50_000))
    assert.equal(stream.writableLength, 100_000)
    watch.sweep(at * 10)
  }
  assert.deepEqual(
    streams.map(({ destroyed }) => destroyed),
    [true, true, false, false],
  )
})
