import assert from 'node:assert/strict'
import { test } from 'node:test'
import { base58 } from '@scure/base'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { BASE58_CHARS_MAX, decodeBase58, encodeBase58 } from './base58.ts'

/** Lengths of keys and signatures, lengths near them, and others; half of the inputs have leading zeros. */
const bytes = fc
  .tuple(
    fc.constantFrom(0, 0, 0, 1, 2, 5, 31, 32, 63, 64, 70),
    fc.oneof(...[32, 64].map((n) => fc.uint8Array({ minLength: n, maxLength: n })), fc.uint8Array({ maxLength: 140 })),
    fc.boolean(),
  )
  .map(([zeros, tail, cut]) => {
    const whole = Uint8Array.of(...new Uint8Array(zeros), ...tail)
    return cut ? whole.slice(0, tail.length) : whole
  })

test('agrees with an independent implementation in both directions', (t) => {
  checkProperty(
    t,
    fc.property(bytes, (given) => {
      const text = base58.encode(given)
      assert.equal(encodeBase58(given), text)
      assert.deepEqual(decodeBase58(text), given)
    }),
    5000,
    200_000,
  )
})

test('texts of any length decode to the same bytes as in an independent implementation', (t) => {
  const digits = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'.split('')
  const texts = fc.string({ unit: fc.constantFrom(...digits, '1', 'z'), maxLength: 120 })
  checkProperty(
    t,
    fc.property(texts, (text) => {
      assert.deepEqual(decodeBase58(text), Uint8Array.from(base58.decode(text)))
      assert.equal(encodeBase58(decodeBase58(text)), text)
    }),
    5000,
    200_000,
  )
})

test('encodes and decodes the largest keys and signatures', () => {
  for (const length of [32, 64]) {
    const given = new Uint8Array(length).fill(0xff)
    assert.equal(encodeBase58(given), base58.encode(given))
    assert.deepEqual(decodeBase58(encodeBase58(given)), given)
    const zero = new Uint8Array(length)
    assert.equal(encodeBase58(zero), '1'.repeat(length))
    assert.deepEqual(decodeBase58('1'.repeat(length)), zero)
  }
})

test('decodes texts as long as a key or a signature that encode one byte more', () => {
  for (const [bytes, chars] of [
    [32, 44],
    [64, 88],
  ] as const) {
    const above = Uint8Array.of(1, ...new Uint8Array(bytes))
    for (const text of [encodeBase58(above), 'z'.repeat(chars)]) {
      assert.equal(text.length, chars)
      assert.deepEqual(decodeBase58(text), Uint8Array.from(base58.decode(text)))
      assert.equal(decodeBase58(text).length, bytes + 1)
    }
  }
})

test('leading zero bytes become the character 1, and known bytes give their known text', () => {
  assert.equal(encodeBase58(new Uint8Array(32)), '11111111111111111111111111111111')
  assert.equal(encodeBase58(Uint8Array.from(Buffer.from('Hello World!'))), '2NEpo7TZRRrLZSi2U')
  assert.equal(encodeBase58(Uint8Array.of(0, 0, 0x28, 0x7f, 0xb4, 0xcd)), '11233QC4')
})

test('throws a TypeError for a character outside the alphabet, at every position and length', () => {
  for (const length of [1, 5, 12, 32, 43, 44, 45, 64, 87, 88, 100]) {
    for (const bad of ['0', 'O', 'I', 'l', ' ', '+', '\0', 'é', '\u{1f600}']) {
      for (const at of [0, length >> 1, length - 1]) {
        const text = 'z'.repeat(at) + bad + 'z'.repeat(length - 1 - at)
        assert.throws(() => decodeBase58(text), TypeError, JSON.stringify(text))
      }
    }
  }
})

test('refuses a text longer than any transaction before decoding it', () => {
  assert.equal(encodeBase58(new Uint8Array(4096).fill(0xff)).length, BASE58_CHARS_MAX)
  assert.throws(() => decodeBase58('z'.repeat(BASE58_CHARS_MAX + 1)), TypeError)
  assert.equal(decodeBase58('1'.repeat(BASE58_CHARS_MAX)).length, BASE58_CHARS_MAX)
})

test('long texts agree with an independent implementation', (t) => {
  const long = fc
    .tuple(fc.nat(3), fc.uint8Array({ minLength: 380, maxLength: 1400, size: 'max' }))
    .map(([zeros, tail]) => Uint8Array.of(...new Uint8Array(zeros), ...tail))
  checkProperty(
    t,
    fc.property(long, (given) => {
      const text = base58.encode(given)
      assert.equal(encodeBase58(given), text)
      assert.deepEqual(Uint8Array.from(decodeBase58(text)), given)
    }),
    100,
    2000,
  )
})

test('decodes the longest instruction data, 10 KiB, when the caller allows it', () => {
  const given = Uint8Array.from({ length: 10_240 }, (_, at) => (at * 7 + 1) % 256)
  const text = encodeBase58(given)
  const digits = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
  const value = text.split('').reduce((sum, char) => sum * 58n + BigInt(digits.indexOf(char)), 0n)
  assert.equal(value, BigInt(`0x${Buffer.from(given).toString('hex')}`))
  assert.deepEqual(Uint8Array.from(decodeBase58(text, 14_000)), given)
  assert.throws(() => decodeBase58(text), TypeError)
})
