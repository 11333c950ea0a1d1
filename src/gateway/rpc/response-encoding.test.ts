import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeResponse, GZIP_BODY_BYTES_MIN } from './response-encoding.ts'

test('encodeResponse compresses large responses only', async () => {
  const respond = (bytes: number) => ({ status: 200, headers: { a: 'b' }, body: Buffer.alloc(bytes, 'x') })
  const small = respond(GZIP_BODY_BYTES_MIN - 1)
  assert.equal(encodeResponse(small, 'gzip'), small)
  const large = await encodeResponse(respond(GZIP_BODY_BYTES_MIN), 'gzip')
  assert.deepEqual(large.headers, { a: 'b', vary: 'accept-encoding', 'content-encoding': 'gzip' })
  const unasked = await encodeResponse(respond(GZIP_BODY_BYTES_MIN), undefined)
  assert.deepEqual(unasked.headers, { a: 'b', vary: 'accept-encoding' })
  assert.equal(unasked.body.length, GZIP_BODY_BYTES_MIN)
})
