import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gatewayOptions } from './options.ts'
import { cacheOf } from './rpc/response-cache.ts'

test('the limit of cached responses is accepted under its former key', () => {
  const limitOf = (cache: object) => cacheOf(gatewayOptions.parse({ cache }).cache)?.responseBytesMax
  assert.equal(limitOf({ enabled: true }), 1024 * 1024)
  assert.equal(limitOf({ enabled: true, responseBytesMax: 2048 }), 2048)
  assert.equal(limitOf({ enabled: true, answerBytesMax: 4096 }), 4096)
  assert.equal(limitOf({ answerBytesMax: 4096 }), undefined)
})
