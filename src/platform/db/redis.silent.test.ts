import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { openRedis, pingRedis } from './redis.ts'

/** Accepts every connection and never replies, as a stopped server does, or a balancer in front of one. */
async function startSilentServer() {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.resume()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sockets,
    accepted: async () => void (await once(server, 'connection')),
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

describe('a redis server that accepts and does not reply', () => {
  test('counts as down after the time of a connection, and is tried again', async () => {
    using server = await startSilentServer()
    const clock = createManualClock(0)
    const logged: string[] = []
    const log = { ...silentLogger, warn: (_: object | string, message = '') => void logged.push(message) }
    const first = server.accepted()
    await using link = openRedis(
      { url: server.url, connectTimeoutMs: 2000 },
      { clock, log, random: createSeededRandom(1) },
    )
    await first
    const second = server.accepted()
    const isClosed = once(server.sockets[0] as Socket, 'close')
    clock.advance(2000)
    await link.tried
    assert.equal(link.isUp(), false)
    assert.deepEqual(logged, ['redis cannot be reached; retrying'])
    await isClosed
    clock.advance(2000)
    await second
  })

  test('is left at once when the link is closed', async () => {
    using server = await startSilentServer()
    const accepted = server.accepted()
    const link = openRedis(
      { url: server.url },
      { clock: createManualClock(0), log: silentLogger, random: createSeededRandom(1) },
    )
    await accepted
    const isClosed = once(server.sockets[0] as Socket, 'close')
    await link[Symbol.asyncDispose]()
    await isClosed
    await link.tried
  })

  test('is reported by a ping', async () => {
    using server = await startSilentServer()
    const clock = createManualClock(0)
    const accepted = server.accepted()
    const pinged = pingRedis({ url: server.url }, { env: {} }, clock)
    await accepted
    clock.advance(2000)
    await assert.rejects(pinged, { code: 'store-unavailable', message: /no reply in 2000 ms/ })
  })
})
