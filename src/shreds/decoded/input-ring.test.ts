import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { createInputMemory, openInputReader, openInputWriter } from './input-ring.ts'

const shredOf = (n: number): Uint8Array => new Uint8Array(1228).fill(n & 255)

test('shreds come out in order with their time, verdict and generation, many times around the ring', () => {
  const memory = createInputMemory(8)
  const writer = openInputWriter(memory)
  const reader = openInputReader(memory)
  let next = 0
  for (let n = 0; n < 1000; n++) {
    assert.equal(writer.offer(shredOf(n), 0, n % 2 === 0 ? 1203 : 1228, n * 1.5, n % 3 === 0, n % 256), true)
    if (n % 5 < 4) continue
    writer.flush()
    const count = reader.read(100, (bytes, at, length, arrivalNanos, isVerified, generation) => {
      assert.deepEqual(
        [bytes[at], bytes[at + length - 1], length, arrivalNanos, isVerified, generation],
        [next & 255, next & 255, next % 2 === 0 ? 1203 : 1228, next * 1.5, next % 3 === 0, next & 255],
      )
      next += 1
    })
    assert.equal(count, 5)
  }
  assert.equal(next, 1000)
  assert.equal(reader.dropped(), 0)
})

test('shreds come out in order where the counts of the ring wrap around, and a full ring is full there too', () => {
  for (const start of [2 ** 31 - 5, -5]) {
    const memory = createInputMemory(8)
    // The counts of what was written and read: after 2^31 shreds, which is some days, and after 2^32.
    const header = new Int32Array(memory)
    header[0] = start
    header[16] = start
    const writer = openInputWriter(memory)
    const reader = openInputReader(memory)
    const seen: number[] = []
    const read = () => reader.read(100, (bytes, at) => seen.push(bytes[at] as number))
    for (let n = 0; n < 40; n++) {
      assert.equal(writer.offer(shredOf(n), 0, 1228, 0, true), true, `shred ${n} after ${start}`)
      if (n % 4 < 3) continue
      writer.flush()
      assert.equal(read(), 4)
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 40 }, (_, n) => n),
    )
    header[0] = start
    header[16] = start
    const again = openInputWriter(memory)
    for (let n = 0; n < 10; n++) assert.equal(again.offer(shredOf(n), 0, 1228, 0, true), n < 8)
    again.flush()
    assert.equal(openInputReader(memory).discard(), 8)
  }
})

test('a full ring drops the new shred and counts it; nothing is visible before the flush', () => {
  const memory = createInputMemory(8)
  const writer = openInputWriter(memory)
  const reader = openInputReader(memory)
  const seen: number[] = []
  const read = () => reader.read(100, (bytes, at) => seen.push(bytes[at] as number))
  for (let n = 0; n < 11; n++) assert.equal(writer.offer(shredOf(n), 0, 1228, 0, true), n < 8)
  assert.equal(read(), 0)
  writer.flush()
  assert.equal(read(), 8)
  assert.equal(reader.dropped(), 3)
  assert.equal(writer.offer(shredOf(20), 0, 1228, 0, true), true)
  writer.flush()
  read()
  assert.deepEqual(seen, [0, 1, 2, 3, 4, 5, 6, 7, 20])
})

test('a packet longer than a shred does not reach into the next cell', () => {
  const memory = createInputMemory(2)
  const writer = openInputWriter(memory)
  const reader = openInputReader(memory)
  writer.offer(new Uint8Array(4000).fill(1), 0, 4000, 0, true)
  writer.offer(new Uint8Array(4000).fill(2), 0, 4000, 0, true)
  writer.flush()
  const lengths: number[] = []
  reader.read(2, (bytes, at, length) => lengths.push(length, bytes[at] as number, bytes[at + length - 1] as number))
  assert.deepEqual(lengths, [1228, 1, 1, 1228, 2, 2])
})

test('writer and reader that are opened again go on where the others ended', () => {
  const memory = createInputMemory(4)
  for (let n = 0; n < 3; n++) openInputWriter(memory).offer(shredOf(9), 0, 1203, 0, true)
  const writer = openInputWriter(memory)
  writer.offer(shredOf(1), 0, 1203, 0, true)
  writer.flush()
  assert.equal(openInputReader(memory).discard(), 1)
  writer.offer(shredOf(2), 0, 1203, 0, true)
  writer.flush()
  const seen: number[] = []
  openInputReader(memory).read(9, (bytes, at) => seen.push(bytes[at] as number))
  assert.deepEqual(seen, [2])
})

test('a reader that waits is woken once, and one that does not wait is not', (t) => {
  const memory = createInputMemory(8)
  const writer = openInputWriter(memory)
  const reader = openInputReader(memory)
  const notify = t.mock.method(Atomics, 'notify', () => 1)
  const write = () => {
    writer.offer(shredOf(1), 0, 1203, 0, true)
    writer.flush()
  }
  write()
  assert.equal(notify.mock.callCount(), 0)
  // While it waits.
  let during: () => void = () => {}
  t.mock.method(Atomics, 'wait', () => {
    during()
    return 'ok'
  })
  during = () => {
    for (let n = 0; n < 3; n++) write()
  }
  reader.wait(10)
  assert.equal(notify.mock.callCount(), 1)
  write()
  assert.equal(notify.mock.callCount(), 1)
  // A call for what it has read before it began to wait does not count: it may come before the reader sleeps.
  assert.equal(
    reader.read(8, () => undefined),
    5,
  )
  during = () => {
    writer.wake()
    assert.equal(notify.mock.callCount(), 1)
    write()
  }
  reader.wait(10)
  assert.equal(notify.mock.callCount(), 2)
  // Another reader, after a restart, is woken too.
  openInputReader(memory).discard()
  during = write
  openInputReader(memory).wait(10)
  assert.equal(notify.mock.callCount(), 3)
})

test('a thread that waits is woken, and loses nothing that was accepted', { timeout: 30_000 }, async () => {
  const memory = createInputMemory(64)
  const worker = new Worker(new URL('../../../test/support/shreds/input-ring-thread.ts', import.meta.url), {
    workerData: memory,
  })
  const writer = openInputWriter(memory)
  const sent: number[] = []
  const [ready] = (await once(worker, 'message')) as [string]
  assert.equal(ready, 'ready')
  const result = once(worker, 'message') as Promise<[{ seen: number[]; dropped: number }]>
  for (let round = 0; round < 50; round++) {
    for (let n = 0; n < 100; n++) if (writer.offer(shredOf(n), 0, 1203, 0, true)) sent.push(n)
    writer.flush()
    await new Promise((resolve) => setImmediate(resolve))
  }
  // The last one ends the thread; the ring may be full for a moment.
  while (!writer.offer(shredOf(255), 0, 1203, 0, true)) await new Promise((resolve) => setImmediate(resolve))
  writer.flush()
  const [{ seen }] = await result
  assert.deepEqual(seen, sent)
  assert.ok(sent.length >= 64)
})
