import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { createRandom, randomBytesOf, seedOf } from '../../../test/support/process/property.ts'
import { createOutputMemory, openOutputReader, openOutputWriter } from './output-ring.ts'

test('each reader gets every record from its opening on, in order and whole', (t) => {
  const random = createRandom(seedOf(t))
  const memory = createOutputMemory(4096)
  const writer = openOutputWriter(memory)
  writer.write([Uint8Array.of(99)])
  const readers = [openOutputReader(memory), openOutputReader(memory)]
  for (let n = 0; n < 2000; n++) {
    const body = new Uint8Array(random(500)).fill(n & 255)
    assert.equal(writer.write([Uint8Array.of(n & 255), body]), true)
    for (const reader of readers) {
      const record = reader.next()
      assert.equal(record?.lost, 0)
      assert.equal(record.payload.length, 1 + body.length)
      assert.ok(record.payload.every((byte) => byte === (n & 255)))
      assert.equal(reader.next(), undefined)
    }
  }
})

test('a reader that falls behind learns exactly how many records it has lost', () => {
  const memory = createOutputMemory(4096)
  const writer = openOutputWriter(memory)
  const reader = openOutputReader(memory)
  for (let n = 0; n < 100; n++) writer.write([new Uint8Array(200).fill(n)])
  let record = reader.next()
  assert.equal(record, undefined, 'reading goes on with the newest')
  writer.write([Uint8Array.of(7)])
  record = reader.next()
  assert.deepEqual([record?.lost, record?.payload[0]], [100, 7])
  writer.write([Uint8Array.of(8)])
  assert.deepEqual(reader.next()?.lost, 0)
})

test('a record that is too long is not written, and counts as no loss: the writer reports it in its own way', () => {
  const memory = createOutputMemory(4096)
  const writer = openOutputWriter(memory)
  const reader = openOutputReader(memory)
  assert.equal(writer.write([new Uint8Array(100)]), true)
  assert.equal(writer.write([new Uint8Array(1025)]), false)
  assert.equal(writer.write([new Uint8Array(101)]), true)
  assert.deepEqual([reader.next()?.lost, reader.next()?.lost, reader.next()], [0, 0, undefined])
})

test('a writer that is opened again goes on, and readers stay', () => {
  const memory = createOutputMemory(4096)
  const reader = openOutputReader(memory)
  for (let n = 0; n < 50; n++) {
    openOutputWriter(memory).write([new Uint8Array(300).fill(n)])
    assert.deepEqual(reader.next()?.payload[7], n)
  }
})

test('a reader in another thread sees only whole records while the writer overwrites, and accounts for all', {
  timeout: 60_000,
}, async () => {
  const records = 100_000
  const memory = createOutputMemory(64 * 1024)
  const reader = openOutputReader(memory)
  const worker = new Worker(new URL('../../../test/support/shreds/output-ring-thread.ts', import.meta.url), {
    workerData: { memory, records },
  })
  let read = 0
  let lost = 0
  let written = 0
  for (let isLast = false; !isLast; ) {
    const record = reader.next()
    if (record === undefined) {
      await reader.wait(1000)
      continue
    }
    read += 1
    lost += record.lost
    const [first] = record.payload
    assert.ok(
      record.payload.every((byte) => byte === first),
      'a torn record',
    )
    isLast = first === 255
    if (isLast) written = records - 1 + record.payload.length
  }
  await worker.terminate()
  assert.equal(read + lost, written)
  assert.ok(read > 0)
})

test('a reader that reuses memory gets the same records, each valid until the next', (t) => {
  const random = createRandom(seedOf(t))
  const memory = createOutputMemory(8 * 1024 * 1024)
  const writer = openOutputWriter(memory)
  const [reusing, copying] = [openOutputReader(memory, { reusesMemory: true }), openOutputReader(memory)]
  const buffers = new Set<unknown>()
  for (const length of [0, 1, 100, 40, 100_000, 1024 * 1024, 1024 * 1024 + 1, 7, 1024 * 1024 - 1]) {
    assert.ok(writer.write([randomBytesOf(random, length)]))
    const [record, copied] = [reusing.next(), copying.next()]
    assert.ok(record !== undefined && copied !== undefined)
    assert.ok(Buffer.from(copied.payload).equals(record.payload), String(length))
    buffers.add(record.payload.buffer)
  }
  assert.ok(buffers.size <= 6, 'it grows, and a longer record has its own')
})
