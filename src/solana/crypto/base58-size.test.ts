import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { decodeBase58, encodeBase58 } from './base58.ts'
import { isBase58Key, isBase58Signature } from './base58-size.ts'

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const SIZES = [
  [32, isBase58Key],
  [64, isBase58Signature],
] as const

function decodedBytes(text: string): number | undefined {
  try {
    return decodeBase58(text).length
  } catch {
    return undefined
  }
}

function checkText(text: string): void {
  const bytes = Buffer.from(`..${text}.`)
  for (const [size, isOfSize] of SIZES)
    assert.equal(isOfSize(bytes, 2, bytes.length - 1), decodedBytes(text) === size, `${size}: ${text}`)
}

test('agrees with the decoder at the bounds of every number of leading zeros', () => {
  for (const [size] of SIZES) {
    for (let zeros = 0; zeros <= size + 1; zeros++) {
      for (const bytes of [size - zeros - 1, size - zeros, size - zeros + 1]) {
        if (bytes < 0) continue
        for (const rest of [Buffer.alloc(bytes, 0xff), Buffer.alloc(bytes).fill(1, 0, Math.min(1, bytes))])
          checkText('1'.repeat(zeros) + (bytes === 0 ? '' : encodeBase58(rest)))
      }
    }
  }
  for (const text of [
    '',
    '1',
    'z'.repeat(44),
    'z'.repeat(88),
    '1'.repeat(31),
    `${'1'.repeat(31)}0`,
    `${'1'.repeat(31)}é`,
  ])
    checkText(text)
})

test('agrees with the decoder on random keys, and on texts like them', (t) => {
  const bytes = fc.oneof(...[31, 32, 33, 63, 64, 65].map((size) => fc.uint8Array({ minLength: size, maxLength: size })))
  const texts = fc.string({ unit: fc.constantFrom(...ALPHABET.split(''), '0', 'l', '!'), minLength: 30, maxLength: 90 })
  checkProperty(
    t,
    fc.property(bytes, (key) => checkText(encodeBase58(key))),
    500,
    20_000,
  )
  checkProperty(t, fc.property(texts, checkText), 500, 20_000)
})
