import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cacheOf, gatewayOptions } from './options.ts'

test('the limit of cached responses is accepted under its former key', () => {
  const limitOf = (cache: object) => cacheOf(gatewayOptions.parse({ cache }).cache)?.responseBytesMax
  assert.equal(limitOf({ enabled: true }), 1024 * 1024)
  assert.equal(limitOf({ enabled: true, responseBytesMax: 2048 }), 2048)
  assert.equal(limitOf({ enabled: true, answerBytesMax: 4096 }), 4096)
  assert.equal(limitOf({ answerBytesMax: 4096 }), undefined)
})
