import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../process/test-wait.ts'
import { HttpConnection } from './connection.ts'
import type { HttpExchange } from './exchange.ts'
import { ok, startResponseServer } from './test-pool.ts'

test('bytes that come before the request has left are not its response', async () => {
  await using server = await startResponseServer(() => {})
  let isReady = false
  const connection = new HttpConnection(
    {
      remote: { host: '127.0.0.1', port: server.port, secure: false, path: '/' },
      ip: '127.0.0.1',
      head: 'POST / HTTP/1.1\r\ncontent-length: ',
      readBuffer: Buffer.alloc(4096),
      // The turn does not end.
      writes: { add() {} },
    },
    { onReady: () => void (isReady = true), onIdle: () => assert.fail('responded'), onClosed() {} },
    0,
  )
  await until('it is connected', () => isReady && server.sockets.size === 1)
  const failures: string[] = []
  const exchange = { body: '{}', bodyBytes: 2, fail: (...how: string[]) => void failures.push(...how) }
  connection.send(exchange as unknown as HttpExchange)
  for (const socket of server.sockets) socket.write(ok('poison'))
  await until('the call has failed', () => failures.length > 0)
  assert.deepEqual(failures, ['not-sent', 'broken', 'unsolicited bytes'])
})
