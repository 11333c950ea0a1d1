import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { createManualClock } from '../../core/clock.ts'
import { until } from '../process/test-wait.ts'
import { type ListenerOptions, openListener } from './listener.ts'
import { createOverloadResponse } from './overload-response.ts'
import { makeTestCert } from './test-cert.ts'

const LOOPBACK = { host: '127.0.0.1', port: 0 }
const REQUEST = 'GET / HTTP/1.1\r\nhost: localhost\r\n\r\n'

/** A listener that limits loopback like any other address, on a manual clock. */
async function openLimited(options: Partial<ListenerOptions> = {}) {
  const clock = createManualClock()
  const refused: string[] = []
  const listener = await openListener(
    { ...LOOPBACK, ...options },
    {
      clock,
      caps: { isExempt: () => false },
      onConnection: (socket) => void socket.resume(),
      onRefused: (reason) => refused.push(reason),
      overloadResponse: createOverloadResponse(clock),
    },
  )
  const clients: Socket[] = []
  const open = (secure = false) => {
    const target = { port: listener.address.port, host: '127.0.0.1', rejectUnauthorized: false }
    const socket = secure ? connectTls(target) : connect(target)
    const client = { socket, text: '', end: '' }
    clients.push(socket)
    socket.on('error', (error: NodeJS.ErrnoException) => (client.end = error.code ?? ''))
    socket.on('data', (bytes: Buffer) => (client.text += bytes.toString('latin1')))
    socket.on('close', () => (client.end ||= 'closed'))
    socket.write(REQUEST)
    return client
  }
  return {
    clock,
    listener,
    refused,
    open,
    async openMany(count: number, secure = false) {
      const opened = Array.from({ length: count }, () => open(secure))
      await until('all are accepted or refused', () => listener.connections() + refused.length >= count)
      return opened
    },
    /** What a client that is refused receives. */
    async responseOf(secure = false) {
      const client = open(secure)
      await until('it is closed', () => client.end !== '')
      return client.text
    },
    async [Symbol.asyncDispose]() {
      for (const socket of clients) socket.destroy()
      await listener[Symbol.asyncDispose]()
    },
  }
}

function bodyOf(response: string): Record<string, unknown> {
  return JSON.parse(response.slice(response.indexOf('\r\n\r\n') + 4)) as Record<string, unknown>
}

test('an address may open at once all connections that it may have; the next one gets a response with the limit', async () => {
  await using limited = await openLimited()
  await limited.openMany(200)
  assert.deepEqual(limited.refused, [])
  const response = await limited.responseOf()
  assert.match(response, /^HTTP\/1\.1 429 .*\r\nretry-after: 5\r\n/s)
  assert.deepEqual(bodyOf(response), {
    error: 'rate-limited',
    message: 'limit reached: 200 open connections of one address',
    limit: 'addressConnectionsMax',
    size: 200,
  })
})

test('new connections of an address beyond the burst get a response with the rate, until it has refilled', async () => {
  await using limited = await openLimited({ addressConnectionsMax: 3, addressConnectionsPerSecond: 2 })
  for (const { socket } of await limited.openMany(3)) socket.destroy()
  await until('they are closed', () => limited.listener.connections() === 0)
  const response = await limited.responseOf()
  assert.match(response, /^HTTP\/1\.1 429 .*\r\nretry-after: 1\r\n/s)
  const { limit, size } = bodyOf(response)
  assert.deepEqual({ limit, size }, { limit: 'addressConnectionsPerSecond', size: 2 })
  limited.clock.advance(500)
  limited.open()
  await until('the next one is accepted', () => limited.listener.connections() === 1)
})

test('with TLS few refused clients a second get a response, and the others are reset before the handshake', async () => {
  using cert = makeTestCert()
  await using limited = await openLimited({ tls: { cert: cert.cert, key: cert.key }, addressConnectionsMax: 1 })
  await limited.openMany(1, true)
  for (let n = 0; n < 10; n++) {
    const { limit } = bodyOf(await limited.responseOf(true))
    assert.equal(limit, 'addressConnectionsMax')
  }
  for (let n = 0; n < 20; n++) assert.equal(await limited.responseOf(true), '')
  limited.clock.advance(100)
  assert.match(await limited.responseOf(true), /^HTTP\/1\.1 429 /)
  assert.equal(await limited.responseOf(true), '')
})
