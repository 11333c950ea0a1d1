import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { TLSSocket } from 'node:tls'
import { isPrivateConnection } from './private-connection.ts'

test('a connection is private when it is encrypted or stays on the machine', () => {
  const tls = new TLSSocket(new Socket())
  assert.equal(isPrivateConnection(tls), true)
  tls.destroy()
  for (const [remoteAddress, isPrivate] of [
    ['127.0.0.1', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
    ['10.0.0.1', false],
    ['::ffff:192.0.2.1', false],
    ['', false],
    [undefined, false],
  ] as const)
    assert.equal(isPrivateConnection({ remoteAddress }), isPrivate, String(remoteAddress))
})
