import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acceptsGzip, encodeResponse, GZIP_BODY_BYTES_MIN } from './response-encoding.ts'

test('which wishes allow gzip', () => {
  for (const criteria of [
    'gzip',
    'GZIP',
    'x-gzip',
    'br, gzip',
    'gzip;q=1.0',
    'gzip ; q=0.001',
    '*',
    'br;q=0, *;q=0.1',
  ]) {
    assert(acceptsGzip(criteria), criteria)
  }
  for (const accepted of [
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
    assert(!acceptsGzip(accepted), accepted)
  }
})

test('only an answer large enough is packed, and only the others are left as they are', async () => {
  const respond = (bytes: number) => ({ status: 200, headers: { a: 'b' }, body: Buffer.alloc(bytes, 'x') })
  const small = respond(GZIP_BODY_BYTES_MIN - 1)
  assert.equal(encodeResponse(small, 'gzip'), small)
  const large = await encodeResponse(respond(GZIP_BODY_BYTES_MIN), 'gzip')
  assert.deepEqual(large.headers, { a: 'b', vary: 'accept-encoding', 'content-encoding': 'gzip' })
  const unasked = await encodeResponse(respond(GZIP_BODY_BYTES_MIN), undefined)
  assert.deepEqual(unasked.headers, { a: 'b', vary: 'accept-encoding' })
  assert.equal(unasked.body.length, GZIP_BODY_BYTES_MIN)
})
