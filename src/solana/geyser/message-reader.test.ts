import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MessageReader, WireFault } from './message-reader.ts'

test('refuses a field that ends after its message', () => {
  // Field 1 is a message of two bytes whose own field 1 claims three; bytes of field 2 follow.
  const bytes = Buffer.of(0x0a, 2, 0x0a, 3, 0x12, 3, 1, 2, 3)
  const outer = new MessageReader(bytes, 0, bytes.length)
  assert.ok(outer.next())
  const inner = outer.message()
  assert.ok(inner.next())
  assert.throws(() => inner.bytes(), WireFault)
})

test('numbers are exact up to 64 bits, packed or not', () => {
  const largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]
  const bytes = Buffer.of(0x08, ...largest, 0x0a, 12, 0x7f, ...largest, 0x00)
  const reader = new MessageReader(bytes, 0, bytes.length)
  const read: bigint[] = []
  while (reader.next()) reader.bigints(read)
  assert.deepEqual(read, [2n ** 64n - 1n, 127n, 2n ** 64n - 1n, 0n])
})

test('refuses a field of another wire type', () => {
  const reader = new MessageReader(Buffer.of(0x08, 1), 0, 2)
  assert.ok(reader.next())
  assert.throws(() => reader.bytes(), WireFault)
})
