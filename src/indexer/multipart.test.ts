import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readMultipart } from './multipart.ts'

const bodyOf = (boundary: string) =>
  Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="query"\r\n\r\nselect 1\r\n--${boundary}--\r\n`)

test('a boundary has at most 70 characters, quoted or not', () => {
  const longest = 'b'.repeat(70)
  const longer = 'b'.repeat(71)
  for (const quote of ['', '"']) {
    const typeOf = (boundary: string) => `multipart/form-data; boundary=${quote}${boundary}${quote}`
    assert.equal(readMultipart(bodyOf(longest), typeOf(longest)).query, 'select 1')
    assert.throws(() => readMultipart(bodyOf(longer), typeOf(longer)), {
      type: 'BAD_ARGUMENTS',
      message: 'The boundary of the multipart body is too long. Maximum: 70 characters.',
    })
  }
})
