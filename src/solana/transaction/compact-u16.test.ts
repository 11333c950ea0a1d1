import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getShortU16Codec } from '@solana/kit'
import { compactU16Length, readCompactU16, writeCompactU16 } from './compact-u16.ts'

test('encodes every value as kit does and decodes it again', () => {
  const codec = getShortU16Codec()
  const target = new Uint8Array(3)
  for (let value = 0; value <= 0xffff; value++) {
    const length = writeCompactU16(target, 0, value)
    assert.equal(length, compactU16Length(value))
    assert.deepEqual(target.subarray(0, length), codec.encode(value))
    assert.equal(readCompactU16(target.subarray(0, length), 0), value * 4 + length)
  }
})

test('of all three-byte inputs, accepts only shortest forms', () => {
  const bytes = new Uint8Array(3)
  let accepted = 0
  for (let input = 0; input < 0x1000000; input += 1) {
    bytes[0] = input
    bytes[1] = input >> 8
    bytes[2] = input >> 16
    const read = readCompactU16(bytes, 0)
    if (read < 0 || (read & 3) < 3) continue
    accepted++
    if (read >> 2 < 0x4000 || read >> 2 > 0xffff) assert.fail(`${input.toString(16)} gave ${read >> 2}`)
  }
  assert.equal(accepted, 0x10000 - 0x4000)
})

test('refuses truncated, overlong and too large values', () => {
  for (const bytes of [
    [],
    [0x80],
    [0x80, 0x80],
    [0x80, 0],
    [0xff, 0x80, 0],
    [0x80, 0x80, 4],
    [0xff, 0xff, 0xff],
    [0xff, 0xff, 0x83],
  ]) {
    assert.equal(readCompactU16(Uint8Array.from(bytes), 0), -1, String(bytes))
  }
  assert.equal(readCompactU16(Uint8Array.of(9, 9, 1), 5), -1)
})
