import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeGrpcMessage, encodeGrpcMessage } from './status.ts'

test('a message is encoded as a field value that HTTP/2 allows, and decoded as it was', () => {
  const encoded: [string, string][] = [
    ['', ''],
    ['no such slot', 'no such slot'],
    ['100%\n', '100%25%0A'],
    [' both ends ', '%20both ends%20'],
    ['  ', '%20%20'],
    [' ', '%20'],
    [' naïve ', '%20na%C3%AFve%20'],
    ['\tx\t', '%09x%09'],
  ]
  for (const [message, expected] of encoded) {
    assert.equal(encodeGrpcMessage(message), expected)
    assert.equal(decodeGrpcMessage(expected), message)
  }
  // Only the outermost one has to be.
  assert.equal(decodeGrpcMessage(encodeGrpcMessage('   x  ')), '   x  ')
})
