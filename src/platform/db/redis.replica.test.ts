import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { until } from '../process/test-wait.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { createRedisScript, openRedis } from './redis.ts'

const COUNT = createRedisScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`)
/** As version 7 and version 6 respond to a script that writes. */
const REFUSALS = [
  `READONLY You can't write against a read only replica. script: ${COUNT.sha1}, on @user_script:1.`,
  `ERR Error running script (call to f_${COUNT.sha1}): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.`,
]

/** A server behind an address that a failover moves. */
async function startServer() {
  const sockets = new Set<Socket>()
  const state: { refusal: string | undefined } = { refusal: undefined }
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    let received = ''
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1')
      for (;;) {
        const command = firstCommand(received)
        if (command === undefined) return
        received = received.slice(command.bytes)
        const isScript = command.name === 'EVALSHA'
        socket.write(!isScript ? '+OK\r\n' : state.refusal === undefined ? ':7\r\n' : `-${state.refusal}\r\n`)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    state,
    sockets,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

/** The name of the first complete command, and its length. */
function firstCommand(text: string): { name: string; bytes: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text)
  if (head === null) return undefined
  let at = head[0].length
  let name: string | undefined
  for (let part = 0; part < Number(head[1]); part++) {
    const length = /^\$(\d+)\r\n/.exec(text.slice(at))
    if (length === null) return undefined
    at += length[0].length
    name ??= text.slice(at, at + Number(length[1]))
    at += Number(length[1]) + 2
  }
  return at > text.length ? undefined : { name: name ?? '', bytes: at }
}

test('a server that has become a replica is left for the one that the address leads to', async () => {
  for (const refusal of REFUSALS) {
    using server = await startServer()
    const clock = createManualClock(0)
    const logged: string[] = []
    const keep = (_: object | string, message = '') => void logged.push(message)
    const log = { ...silentLogger, warn: keep, info: keep }
    await using link = openRedis({ url: server.url }, { clock, log, random: createSeededRandom(1) })
    await link.tried
    assert.deepEqual(await link.run(COUNT, ['n'], ['1']), { ok: true, reply: 7 })

    server.state.refusal = refusal
    for (let connections = 1; connections <= 3; connections++) {
      assert.equal(server.sockets.size, connections)
      const outcome = await link.run(COUNT, ['n'], ['1'])
      assert.deepEqual([outcome.ok, link.isUp()], [false, false])
      clock.advance(2000)
      await until('the next connection', () => link.isUp())
    }
    assert.deepEqual(logged, ['redis cannot be reached; retrying'], 'not once for each connection')

    server.state.refusal = undefined
    assert.deepEqual(await link.run(COUNT, ['n'], ['1']), { ok: true, reply: 7 })
    assert.equal(link.isUp(), true)
    assert.deepEqual(logged, ['redis cannot be reached; retrying', 'redis is reachable again'])
  }
})
