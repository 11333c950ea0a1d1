import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acceptsGzip, encodeAnswer, GZIP_BODY_BYTES_MIN } from './response-encoding.ts'

test('which wishes allow gzip', () => {
  for (const wish of ['gzip', 'GZIP', 'x-gzip', 'br, gzip', 'gzip;q=1.0', 'gzip ; q=0.001', '*', 'br;q=0, *;q=0.1']) {
    assert(acceptsGzip(wish), wish)
  }
  for (const wish of [
    '',
    'br',
    'identity',
    'gzip;q=0',
    'gzip; q=0.000',
    '*;q=0',
    'gzip;q=0, *',
    '*, gzip;q=0',
    'gzipped',
  ]) {
    assert(!acceptsGzip(wish), wish)
  }
})

test('only an answer large enough is packed, and only the others are left as they are', async () => {
  const answer = (bytes: number) => ({ status: 200, headers: { a: 'b' }, body: Buffer.alloc(bytes, 'x') })
  const small = answer(GZIP_BODY_BYTES_MIN - 1)
  assert.equal(encodeAnswer(small, 'gzip'), small)
  const large = await encodeAnswer(answer(GZIP_BODY_BYTES_MIN), 'gzip')
  assert.deepEqual(large.headers, { a: 'b', vary: 'accept-encoding', 'content-encoding': 'gzip' })
  const unasked = await encodeAnswer(answer(GZIP_BODY_BYTES_MIN), undefined)
  assert.deepEqual(unasked.headers, { a: 'b', vary: 'accept-encoding' })
  assert.equal(unasked.body.length, GZIP_BODY_BYTES_MIN)
})
