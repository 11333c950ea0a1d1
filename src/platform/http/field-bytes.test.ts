import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headEnd, isLineEnd, nameEnd, printableEnd, valueEnd } from './field-bytes.ts'

test('classifies the bytes of names and values as the grammar does', () => {
  for (let code = 0; code < 256; code++) {
    const bytes = Uint8Array.of(code)
    const text = String.fromCharCode(code)
    assert.equal(nameEnd(bytes, 0, 1), /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(text) ? 1 : 0, `name ${code}`)
    assert.equal(valueEnd(bytes, 0, 1), /[\t\x20-\x7e\x80-\xff]/.test(text) ? 1 : 0, `value ${code}`)
    assert.equal(printableEnd(bytes, 0, 1), /[\x20-\x7e]/.test(text) ? 1 : 0, `printable ${code}`)
  }
  assert.equal(nameEnd(Buffer.from('abc: d'), 0, 2), 2)
})

test('finds the end of a head at any offset', () => {
  const kinds = ['\r', '\n', 'x']
  for (let number = 0; number < 3 ** 8; number++) {
    const text = Array.from({ length: 8 }, (_nothing, at) => kinds[Math.floor(number / 3 ** at) % 3]).join('')
    for (const from of [0, 1, 2]) {
      assert.equal(headEnd(Buffer.from(text), from), text.indexOf('\r\n\r\n', from), JSON.stringify(text))
    }
  }
  assert.equal(isLineEnd(Buffer.from('a\r\n'), 1), true)
  assert.equal(isLineEnd(Buffer.from('a\r'), 1), false)
})
