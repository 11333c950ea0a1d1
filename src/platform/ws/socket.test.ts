import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { WebSocket } from 'ws'
import { createManualClock } from '../../core/clock.ts'
import { startHttpServer } from '../http/server/server.ts'
import { until } from '../process/test-wait.ts'
import { silentLogger } from '../telemetry/logger.ts'
import type { WsConnection } from './connection.ts'
import { createWsServer } from './server.ts'

/** A server with one client. `onMessage` is called for each message, and `mostInATurn` is how many there were in one turn of the event loop. */
async function connect(onMessage: (text: string, connection: WsConnection) => void | Promise<void>) {
  const clock = createManualClock()
  const received: string[] = []
  let inTurn = 0
  let mostInATurn = 0
  const ws = createWsServer(
    { messageBytesMax: 4096 },
    {
      clock,
      onConnection: (connection) =>
        connection.onMessage((text) => {
          if (inTurn === 0) setImmediate(() => (inTurn = 0))
          inTurn += 1
          mostInATurn = Math.max(mostInATurn, inTurn)
          received.push(text)
          return onMessage(text, connection)
        }),
    },
  )
  const http = await startHttpServer(
    { listen: { host: '127.0.0.1', port: 0 } },
    { log: silentLogger, onRequest: (_, response) => void response.end(), onUpgrade: ws.upgrade },
  )
  const client = new WebSocket(`ws://127.0.0.1:${http.address.port}`)
  client.on('error', () => {})
  const replies: string[] = []
  client.on('message', (data: Buffer) => void replies.push(data.toString()))
  await once(client, 'open')
  const { _socket: socket } = client as unknown as { _socket: { cork(): void; uncork(): void } }
  return {
    clock,
    client,
    received,
    replies,
    mostInATurn: () => mostInATurn,
    /** In one write. */
    sendAll(messages: readonly (string | Buffer)[], last?: () => void) {
      socket.cork()
      for (const message of messages) client.send(message)
      last?.()
      socket.uncork()
    },
    async [Symbol.asyncDispose]() {
      client.terminate()
      await ws[Symbol.asyncDispose]()
      await http[Symbol.asyncDispose]()
    },
  }
}

const numbers = (count: number) => Array.from({ length: count }, (_, at) => String(at))

test('of thousands of messages in one write, a few are delivered within a turn of the event loop, all of them in order', async () => {
  const messages = numbers(2000)
  await using on = await connect((text, connection) => connection.send(text))
  on.sendAll(messages)
  await until('all replies came', () => on.replies.length === messages.length)
  assert.deepEqual(on.received, messages)
  assert.deepEqual(on.replies, messages)
  assert.equal(on.mostInATurn(), 16)
})

test('a pause holds the messages of the same read, and its end delivers them in order', async () => {
  await using on = await connect((text, connection) => {
    connection.send(text)
    if (Number(text) % 100 === 3) connection.pauseReading(1000)
  })
  const messages = numbers(300)
  on.sendAll(messages)
  for (const last of [3, 103, 203]) {
    await until('the message of the pause is answered', () => on.replies.length > last)
    assert.equal(on.received.length, last + 1)
    on.clock.advance(1000)
  }
  await until('all replies came', () => on.replies.length === messages.length)
  assert.deepEqual(on.received, messages)
})

test('the close frame behind waiting messages is replied to after their responses', async () => {
  await using on = await connect(async (text, connection) => connection.send(text))
  const messages = numbers(1000)
  on.sendAll(messages, () => on.client.close(1000))
  const [code] = await once(on.client, 'close')
  assert.equal(code, 1000)
  assert.deepEqual(on.replies, messages)
})

test('waiting messages are dropped where this side closes, and where the client breaks the protocol', async () => {
  await using closing = await connect((text, connection) => {
    if (text === '5') connection.close(1008, 'enough')
  })
  closing.sendAll(numbers(1000))
  assert.equal((await once(closing.client, 'close'))[0], 1008)
  assert.ok(closing.received.length <= 16, String(closing.received.length))
  await using broken = await connect(() => {})
  broken.sendAll([...numbers(100), 'a'.repeat(5000), ...numbers(100)])
  assert.equal((await once(broken.client, 'close'))[0], 1009)
  assert.ok(broken.received.length <= 16, String(broken.received.length))
})
