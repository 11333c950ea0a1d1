import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CELL_BYTES } from '../../platform/udp/port.ts'
import { createInputMemory, openInputReader, openInputWriter } from '../decoded/input-ring.ts'
import { createDecodedFeed } from './decoded-feed.ts'

test('a shred has the time at which the kernel received it, on the monotonic clock; a wall clock that is set changes it by a second at most', () => {
  const memory = createInputMemory(16)
  const [bytes, arrivals, timeMicros] = [new Uint8Array(4 * CELL_BYTES), new Float64Array(4), new Float64Array(1)]
  const arena = {
    bytes,
    arrivals,
    timeMicros,
    words: new Int32Array(bytes.buffer),
    lengths: new Int32Array(4),
    sources: new Int8Array(4),
  }
  const marks = {
    unchecked: Uint8Array.of(0, 1, 0, 0),
    offMainChain: new Uint8Array(4),
    generation: new Uint8Array(4),
    latestGeneration: () => 0,
  }
  const feed = createDecodedFeed(marks, {
    port: { arena, readTime: () => void (timeMicros[0] = 50_000_000) },
    clock: { monotonicMs: () => 7000 },
    input: openInputWriter(memory),
  })
  // Two milliseconds ago, one ago, in the future, long ago.
  arrivals.set([49_998_000, 49_999_000, 60_000_000, 0])
  const order = Uint16Array.of(0, 1, 2, 3)
  feed.offer({ order, data: 3, coding: 1, slots: new Float64Array(1), slotCount: 0, duplicates: 0 })
  const read: [number, boolean][] = []
  openInputReader(memory).read(16, (_bytes, _at, _length, arrivalNanos, isVerified) => {
    read.push([arrivalNanos / 1e6, isVerified])
  })
  assert.deepEqual(read, [
    [6998, true],
    [6999, false],
    [7000, true],
    [6000, true],
  ])
})

test('a shred has the generation of its slots; those of the chain before it and those apart from it are not passed on', () => {
  const memory = createInputMemory(16)
  const bytes = Uint8Array.from({ length: 4 * CELL_BYTES }, (_, i) => Math.floor(i / CELL_BYTES))
  const arena = {
    bytes,
    arrivals: new Float64Array(4),
    timeMicros: new Float64Array(1),
    words: new Int32Array(bytes.buffer),
    lengths: new Int32Array(4),
    sources: new Int8Array(4),
  }
  const marks = {
    unchecked: new Uint8Array(4),
    offMainChain: Uint8Array.of(0, 1, 0, 1),
    generation: Uint8Array.of(1, 1, 2, 2),
    latestGeneration: () => 2,
  }
  const feed = createDecodedFeed(marks, {
    port: { arena, readTime: () => undefined },
    clock: { monotonicMs: () => 7000 },
    input: openInputWriter(memory),
  })
  const order = Uint16Array.of(0, 1, 2, 3)
  feed.offer({ order, data: 3, coding: 1, slots: new Float64Array(1), slotCount: 0, duplicates: 0 })
  const read: [cell: number | undefined, generation: number][] = []
  openInputReader(memory).read(16, (shreds, at, _length, _arrivalNanos, _isVerified, generation) => {
    read.push([shreds[at], generation])
  })
  assert.deepEqual(read, [[2, 2]])
})

test('packets are visible at once; an engine that sleeps is woken at the end of a burst, or after 48 shreds', () => {
  const bytes = new Uint8Array(64 * CELL_BYTES)
  const arena = {
    bytes,
    arrivals: new Float64Array(64),
    timeMicros: new Float64Array(1),
    words: new Int32Array(bytes.buffer),
    lengths: new Int32Array(64),
    sources: new Int8Array(64),
  }
  const done: string[] = []
  const note = (what: string) => () => void done.push(what)
  const marks = {
    unchecked: new Uint8Array(64),
    offMainChain: new Uint8Array(64),
    generation: new Uint8Array(64),
    latestGeneration: () => 0,
  }
  const feed = createDecodedFeed(marks, {
    port: { arena, readTime: () => undefined },
    clock: { monotonicMs: () => 7000 },
    input: { offer: () => true, publish: note('publish'), wake: note('wake'), flush: note('flush') },
  })
  const offer = (data: number) =>
    feed.offer({
      order: Uint16Array.from({ length: 64 }, (_, i) => i),
      data,
      coding: 0,
      slots: new Float64Array(1),
      slotCount: 0,
      duplicates: 0,
    })
  offer(0)
  assert.equal(feed.isWakeDue(), false)
  offer(1)
  offer(15)
  assert.deepEqual([feed.isWakeDue(), done], [true, ['publish', 'publish']])
  feed.wake()
  assert.deepEqual([feed.isWakeDue(), done.at(-1)], [false, 'wake'])
  done.length = 0
  offer(30)
  offer(18)
  assert.deepEqual([feed.isWakeDue(), done], [false, ['publish', 'publish', 'wake']])
})
