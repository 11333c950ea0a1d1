import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
import { makeTestCert } from '../../net/test-cert.ts'
import { until } from '../../process/test-wait.ts'
import type { HttpOutcome, MovableUntil } from './exchange.ts'
import { ok, openTestPool, startResponseServer, textOf } from './test-pool.ts'

test('a connection that is late fails a call only where no other one is open', async (t) => {
  using cert = makeTestCert()
  const pem = { key: readFileSync(cert.key, 'utf8'), cert: readFileSync(cert.cert, 'utf8') }
  const clock = createManualClock()
  const held: Socket[] = []
  await using server = await startResponseServer((socket) => held.push(socket), pem)
  // Accepts connections; whether a handshake gets a response is decided for each.
  let isSilent = true
  const accepted: Socket[] = []
  const front = createServer((socket) => {
    accepted.push(socket)
    socket.on('error', () => {})
    if (!isSilent) socket.pipe(connect(server.port, '127.0.0.1')).pipe(socket)
  })
  t.after(() => {
    front.close()
    for (const socket of accepted) socket.destroy()
  })
  front.listen(0, '127.0.0.1')
  await once(front, 'listening')
  const { port } = front.address() as { port: number }
  using on = openTestPool(port, { ca: pem.cert, connectTimeoutMs: 4000 }, clock, 'localhost')

  let lost: HttpOutcome | undefined
  void on.call('0', { deadlineMs: 60_000 }).then((outcome) => void (lost = outcome))
  await until('the server has accepted it', () => accepted.length === 1)
  clock.advance(4050)
  await until('it has failed', () => lost !== undefined, 5000)
  assert.deepEqual(lost, { kind: 'not-sent', cause: 'connect', message: 'no connection in time' })

  isSilent = false
  const first = on.call('1', { deadlineMs: 60_000 })
  await until('the first is sent', () => held.length === 1)
  isSilent = true
  const second = on.call('2', { deadlineMs: 60_000 })
  await until('its connection is accepted', () => accepted.length === 3)
  clock.advance(4050)
  await until('another one is tried', () => accepted.length === 4, 5000)
  assert.equal(on.pool.inFlight, 2)
  held[0]?.write(ok('first'))
  assert.equal(textOf(await first), 'first')
  await until('the second is sent over it', () => held.length === 2)

  // A refusal is no lateness: the server is gone, whatever is still open.
  front.close()
  let refused: HttpOutcome | undefined
  void on.call('3', { deadlineMs: 60_000 }).then((outcome) => void (refused = outcome))
  clock.advance(4050)
  await until('it has failed', () => refused !== undefined, 5000)
  assert.deepEqual(refused, { kind: 'not-sent', cause: 'connect', message: 'ECONNREFUSED' })
  held[1]?.write(ok('second'))
  assert.equal(textOf(await second), 'second')
})

test('a call that waits at a server which has gone silent moves, one that may not waits on', async () => {
  const clock = createManualClock()
  const held: Socket[] = []
  await using server = await startResponseServer((socket) => held.push(socket))
  using on = openTestPool(server.port, { connectionsMax: 1 }, clock)
  const outcomes = new Map<string, HttpOutcome>()
  const call = (name: string, movableUntil?: MovableUntil) =>
    void on.call(name, { deadlineMs: 60_000, movableUntil }).then((outcome) => outcomes.set(name, outcome))
  call('sent', 'sent')
  await until('the first is sent', () => held.length === 1)
  call('waits', 'sent')
  call('stays')
  on.pool.giveUp()
  await until('the waiting call has failed', () => outcomes.size > 0, 5000)
  assert.deepEqual([...outcomes], [['waits', { kind: 'not-sent', cause: 'silent', message: 'no response' }]])
  assert.equal(on.pool.inFlight, 2)
})
