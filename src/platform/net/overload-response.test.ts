import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { until } from '../process/test-wait.ts'
import { createOverloadResponse } from './overload-response.ts'

const AT_ONCE = 8
const RESPONSE_MS = 500

/** A port that refuses every connection, on a manual clock. */
async function openTurningAway() {
  const clock = createManualClock()
  const overloadResponse = createOverloadResponse(clock)
  const held = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    held.add(socket)
    socket.once('close', () => held.delete(socket))
    overloadResponse(socket, 'descriptors')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const clients = new Set<Socket>()
  return {
    clock,
    /** Descriptors of refused connections. */
    held: () => held.size,
    async come(count: number) {
      const came = Array.from({ length: count }, () => {
        const one = { socket: connect((server.address() as { port: number }).port, '127.0.0.1'), text: '', end: '' }
        clients.add(one.socket)
        one.socket.on('error', (error: NodeJS.ErrnoException) => (one.end = error.code ?? ''))
        one.socket.on('data', (bytes: Buffer) => (one.text += bytes.toString('latin1')))
        one.socket.on('close', () => (one.end ||= 'closed'))
        return one
      })
      await until('they are connected', () => came.every(({ socket, end }) => !socket.connecting || end !== ''))
      return came
    },
    [Symbol.dispose]() {
      for (const socket of [...clients, ...held]) socket.destroy()
      server.close()
    },
  }
}

test('responds to few at a time and resets the others, so that they do not use up the reserve', async () => {
  using server = await openTurningAway()
  const silent = await server.come(100)
  await until('all but a few are closed', () => silent.filter(({ end }) => end === '').length <= AT_ONCE)
  await until('only theirs are open', () => server.held() === AT_ONCE)
  assert.ok(
    silent.every(({ end }) => end === '' || end === 'ECONNRESET'),
    'the client gets a reset, not an end',
  )

  // A connection that gets its response makes space for another.
  const [first] = silent.filter(({ end }) => end === '')
  first?.socket.write('GET / HTTP/1.1\r\n\r\n')
  await until('it got its response and is closed', () => first?.end !== '')
  assert.match(first?.text ?? '', /^HTTP\/1\.1 503 .*\r\nretry-after: 1\r\n/s)
  assert.match(
    first?.text ?? '',
    /\{"error":"no-descriptors","message":"the server has no free file descriptors; retry"\}$/,
  )
  await until('its descriptor is free', () => server.held() === AT_ONCE - 1)
  const [next] = await server.come(1)
  next?.socket.write('x')
  await until('the next one got its response', () => next?.text.startsWith('HTTP/1.1 503 ') === true)
})

test('closes a silent connection after half a second without a response', async () => {
  using server = await openTurningAway()
  const silent = await server.come(AT_ONCE)
  await until('all are open', () => server.held() === AT_ONCE)
  server.clock.advance(RESPONSE_MS - 1)
  assert.equal(server.held(), AT_ONCE)
  server.clock.advance(1)
  await until('all are closed', () => server.held() === 0 && silent.every(({ end }) => end !== ''))
  assert.ok(
    silent.every(({ text }) => text === ''),
    'no response without a request',
  )
  for (let round = 0; round < 3; round++) {
    const more = await server.come(AT_ONCE)
    for (const { socket } of more) socket.write('x')
    await until('as many again get a response', () => more.every(({ text }) => text.startsWith('HTTP/1.1 503 ')))
    await until('their descriptors are free', () => server.held() === 0)
  }
})
