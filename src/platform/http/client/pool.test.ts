import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
import { createPinnedAddress } from '../../net/pinned-address.ts'
import { makeTestCert } from '../../net/test-cert.ts'
import { systemClock } from '../../process/clock.ts'
import { until } from '../../process/test-wait.ts'
import type { HttpOutcome } from './exchange.ts'
import { createHttpPool } from './pool.ts'
import { ok, openTestPool, startResponseServer, textOf } from './test-pool.ts'

test('sends a request in one write, with the configured headers only', async () => {
  await using server = await startResponseServer((socket) => socket.write(ok('{"a":1}')))
  using on = openTestPool(server.port, { headers: { 'x-token': 'node secret' } })
  const outcome = await on.call('{"x":2}')
  assert.ok(outcome.kind === 'reply')
  assert.deepEqual([outcome.head.status, outcome.body.toString(), outcome.rest], [200, '{"a":1}', undefined])
  assert.deepEqual(server.seen, [
    `POST /rpc HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\ncontent-type: application/json\r\nx-token: node secret\r\ncontent-length: 7\r\n\r\n{"x":2}`,
  ])
})

test('refuses a header with a line break, without its value in the error', () => {
  assert.throws(
    () => openTestPool(1, { headers: { 'x-token': 'a\r\nhost: b' } }),
    (error: Error) => !error.message.includes('host: b'),
  )
})

test('reuses connections, and concurrent calls get one each', async () => {
  await using server = await startResponseServer((socket, { text }) => socket.write(ok(text.slice(-3))))
  using on = openTestPool(server.port)
  for (let round = 0; round < 5; round++) assert.equal(textOf(await on.call(`"${round}"`)), `"${round}"`)
  assert.equal(server.connections(), 1)
  const texts = await Promise.all(Array.from({ length: 8 }, async (_, at) => textOf(await on.call(`"${at}"`))))
  assert.deepEqual(texts, ['"0"', '"1"', '"2"', '"3"', '"4"', '"5"', '"6"', '"7"'])
  assert.equal(server.connections(), 8)
  assert.deepEqual([on.pool.inFlight, on.pool.connections], [0, 8])
})

test('reads responses in every framing; a close-delimited one closes its connection', async () => {
  const responses = [
    ok('length'),
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nchu\r\n3\r\nnks\r\n0\r\n\r\n',
    'HTTP/1.1 200 OK\r\n\r\nclose',
    `HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbusy`,
  ]
  await using server = await startResponseServer((socket, { number }) => {
    socket.write(responses[number - 1] as string)
    if (number === 3) socket.end()
  })
  using on = openTestPool(server.port)
  for (const expected of ['length', 'chunks', 'close', 'busy']) assert.equal(textOf(await on.call()), expected)
  assert.equal(server.connections(), 2)
})

test('does not follow a redirect', async () => {
  await using elsewhere = await startResponseServer((socket) => socket.write(ok('wrong')))
  await using server = await startResponseServer((socket) =>
    socket.write(`HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:${elsewhere.port}/\r\nContent-Length: 0\r\n\r\n`),
  )
  using on = openTestPool(server.port)
  const outcome = await on.call()
  assert.ok(outcome.kind === 'reply' && outcome.head.status === 307)
  assert.equal(elsewhere.connections(), 0)
})

test('closes a connection on unsolicited bytes behind a response', async () => {
  await using server = await startResponseServer((socket, { number }) => {
    if (number === 1) socket.write(`${ok('first')}${ok('poison')}`)
    else socket.write(ok(`number ${number}`))
  })
  using on = openTestPool(server.port)
  assert.equal(textOf(await on.call()), 'first')
  assert.equal(textOf(await on.call()), 'number 2')
  assert.equal(server.connections(), 2)
})

test('closes an idle connection on unsolicited bytes, which are no response', async () => {
  await using server = await startResponseServer((socket, { number }) => socket.write(ok(`number ${number}`)))
  // The clock stands still, so that nothing else closes an idle connection.
  using on = openTestPool(server.port, {}, createManualClock())
  assert.equal(textOf(await on.call()), 'number 1')
  for (const socket of server.sockets) socket.write(ok('poison'))
  await until('the poisoned connection is dropped', () => on.pool.connections === 0, 5000)
  assert.equal(textOf(await on.call()), 'number 2')
  assert.equal(server.connections(), 2)
})

test('half of a response on an idle connection is not part of the next one', async () => {
  await using server = await startResponseServer((socket, { number }) => socket.write(ok(`number ${number}`)))
  using on = openTestPool(server.port, {}, createManualClock())
  await on.call()
  for (const socket of server.sockets) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n')
  await until('the poisoned connection is dropped', () => on.pool.connections === 0, 5000)
  assert.equal(textOf(await on.call()), 'number 2')
})

test('a malformed response fails the call and closes the connection', async () => {
  await using server = await startResponseServer((socket, { number }) =>
    socket.write(number === 1 ? 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n' : ok('good')),
  )
  using on = openTestPool(server.port)
  const outcome = await on.call()
  assert.deepEqual(outcome, { kind: 'maybe-sent', cause: 'bad-response', message: 'two content-length headers' })
  assert.equal(textOf(await on.call()), 'good')
  assert.equal(server.connections(), 2)
})

test('a refused connection fails at once as not-sent, without the address in the message', async () => {
  const server = await startResponseServer(() => {})
  await server[Symbol.asyncDispose]()
  using on = openTestPool(server.port)
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => on.call()))
  for (const outcome of outcomes)
    assert.deepEqual(outcome, { kind: 'not-sent', cause: 'connect', message: 'ECONNREFUSED' })
  assert.deepEqual([on.pool.inFlight, on.pool.connections], [0, 0])
})

test('a connection lost before the response fails as maybe-sent', async () => {
  await using server = await startResponseServer((socket) => void socket.resetAndDestroy())
  using on = openTestPool(server.port)
  const outcome = await on.call()
  assert.ok(outcome.kind === 'maybe-sent' && outcome.cause === 'broken')
})

test('a reused connection that is dead fails as stale, a new one as broken', async () => {
  await using server = await startResponseServer((socket, { number }) => {
    if (number === 2) socket.resetAndDestroy()
    else
      socket.write(
        number === 4 ? 'HTTP/1.1 200 OK\r\n' : ok('good'),
        () => void (number === 4 && socket.resetAndDestroy()),
      )
  })
  using on = openTestPool(server.port)
  await on.call()
  const stale = await on.call()
  assert.ok(stale.kind === 'maybe-sent' && stale.cause === 'stale')
  assert.equal(server.seen.length, 2, 'the pool itself repeats nothing')
  await on.call()
  const broken = await on.call()
  assert.ok(broken.kind === 'maybe-sent' && (broken.cause === 'broken' || broken.cause === 'stale'))
})

test('the deadline ends the call and its connection at the next sweep', async () => {
  const clock = createManualClock()
  await using server = await startResponseServer(() => {})
  using on = openTestPool(server.port, {}, clock)
  const outcome = on.call('{}', { deadlineMs: 10_000 })
  let settled: HttpOutcome | undefined
  void outcome.then((value) => void (settled = value))
  await until('the server has the request', () => server.seen.length === 1)
  await clock.advanceAsync(9_949)
  assert.equal(settled, undefined)
  await clock.advanceAsync(101)
  assert.deepEqual(await outcome, { kind: 'maybe-sent', cause: 'deadline', message: 'no response in time' })
  assert.deepEqual([on.pool.inFlight, on.pool.connections], [0, 0])
  await until('the connection is closed', () => server.sockets.size === 0)
})

test('over connectionsMax calls wait in order; over waitingMax they fail', async () => {
  const responses: (() => void)[] = []
  await using server = await startResponseServer((socket, { text }) =>
    responses.push(() => socket.write(ok(text.slice(-1)))),
  )
  using on = openTestPool(server.port, { connectionsMax: 2, waitingMax: 3 })
  const first = [on.call('1'), on.call('2')]
  await until('both are sent', () => responses.length === 2)
  const more = [on.call('3'), on.call('4'), on.call('5')]
  assert.equal(on.pool.inFlight, 5)
  assert.deepEqual(await on.call('6'), {
    kind: 'not-sent',
    cause: 'busy',
    message: 'too many calls wait for a connection',
  })
  for (let at = 0; at < 5; at++) {
    await until('the next request came', () => responses.length > at)
    responses[at]?.()
  }
  assert.deepEqual((await Promise.all([...first, ...more])).map(textOf), ['1', '2', '3', '4', '5'])
  assert.equal(server.connections(), 2)
})

test('opens few connections at a time, and as many as calls wait', async () => {
  const held = new Set<Socket>()
  await using server = await startResponseServer((socket, { number }) =>
    number === 1 ? socket.write(ok('done')) : held.add(socket),
  )
  using on = openTestPool(server.port, { connectionsMax: 40, connectingMax: 8 })
  // Its address is known then, and one connection is idle.
  await on.call()
  const calls = Array.from({ length: 50 }, () => on.call())
  assert.equal(on.pool.connections, 1 + 8)
  await until('all connections are in use', () => held.size === 40)
  assert.equal(server.connections(), 40)
  while (held.size > 0 || on.pool.inFlight > 0) {
    for (const socket of held) socket.write(ok('done'))
    held.clear()
    await until('the next are sent', () => held.size > 0 || on.pool.inFlight === 0)
  }
  assert.deepEqual(new Set((await Promise.all(calls)).map(textOf)), new Set(['done']))
})

test('a call that waits until its deadline fails as not-sent', async () => {
  const clock = createManualClock()
  await using server = await startResponseServer(() => {})
  using on = openTestPool(server.port, { connectionsMax: 1 }, clock)
  const first = on.call('1', { deadlineMs: 60_000 })
  await until('the first is sent', () => server.seen.length === 1)
  const second = on.call('2', { deadlineMs: 1000 })
  await clock.advanceAsync(1000)
  assert.deepEqual(await second, { kind: 'not-sent', cause: 'deadline', message: 'no connection in time' })
  await clock.advanceAsync(59_000)
  assert.equal((await first).kind, 'maybe-sent')
})

test('closes idle connections after idleMs, or before the server would', async () => {
  const clock = createManualClock()
  let hint = ''
  await using server = await startResponseServer((socket) =>
    socket.write(`HTTP/1.1 200 OK\r\n${hint}Content-Length: 0\r\n\r\n`),
  )
  using on = openTestPool(server.port, { idleMs: 30_000 }, clock)
  await on.call()
  clock.advance(29_900)
  assert.equal(on.pool.connections, 1)
  clock.advance(100)
  assert.equal(on.pool.connections, 0)
  hint = 'Keep-Alive: timeout=5\r\n'
  await on.call()
  clock.advance(3_900)
  assert.equal(on.pool.connections, 1)
  clock.advance(100)
  assert.equal(on.pool.connections, 0)
  hint = 'Keep-Alive: timeout=1\r\n'
  await on.call()
  assert.equal(on.pool.connections, 0, 'a server that keeps nothing is not kept')
})

test('abort ends a waiting call and a running one at once', async () => {
  await using server = await startResponseServer(() => {})
  using on = openTestPool(server.port, { connectionsMax: 1 })
  const outcomes: HttpOutcome[] = []
  const request = { body: Buffer.from('{}'), deadlineMs: 10_000 }
  const running = on.pool.call(request, (outcome) => outcomes.push(outcome))
  await until('it is sent', () => server.seen.length === 1)
  const waiting = on.pool.call(request, (outcome) => outcomes.push(outcome))
  waiting.abort()
  running.abort()
  running.abort()
  assert.deepEqual(
    outcomes.map((outcome) => [outcome.kind, textOf(outcome)]),
    [
      ['not-sent', 'aborted'],
      ['maybe-sent', 'aborted'],
    ],
  )
  assert.equal(on.pool.inFlight, 0)
})

test('dispose ends every call and every connection', async () => {
  await using server = await startResponseServer(() => {})
  const on = openTestPool(server.port, { connectionsMax: 1 })
  const outcomes = [on.call(), on.call()]
  await until('one is sent', () => server.seen.length === 1)
  on.pool[Symbol.dispose]()
  assert.deepEqual(
    (await Promise.all(outcomes)).map((outcome) => [outcome.kind, textOf(outcome)]),
    [
      ['maybe-sent', 'closed'],
      ['not-sent', 'closed'],
    ],
  )
  assert.deepEqual(await on.call(), { kind: 'not-sent', cause: 'closed', message: 'the pool is closed' })
  await until('the connection is closed', () => server.sockets.size === 0)
})

test('checks the certificate against the name', async () => {
  using cert = makeTestCert()
  const pem = { key: readFileSync(cert.key, 'utf8'), cert: readFileSync(cert.cert, 'utf8') }
  await using server = await startResponseServer((socket) => socket.write(ok('secret')), pem)
  using trusted = openTestPool(server.port, { ca: pem.cert }, systemClock, 'localhost')
  assert.equal(textOf(await trusted.call()), 'secret')
  assert.equal(textOf(await trusted.call()), 'secret')
  assert.equal(server.connections(), 1)
  using other = makeTestCert('other')
  using untrusted = openTestPool(server.port, { ca: readFileSync(other.cert, 'utf8') }, systemClock, 'localhost')
  const outcome = await untrusted.call()
  assert.ok(outcome.kind === 'not-sent' && outcome.cause === 'connect', textOf(outcome))
})

test('does not connect to a forbidden address', async () => {
  const address = createPinnedAddress(
    { host: '169.254.169.254', port: 80, secure: false, path: '/' },
    { allowPrivate: true },
  )
  using pool = createHttpPool({}, { clock: systemClock, address })
  const outcome = await new Promise<HttpOutcome>((resolve) => {
    pool.call({ body: Buffer.from('{}'), deadlineMs: 1000 }, resolve)
  })
  assert.ok(outcome.kind === 'not-sent' && outcome.cause === 'address')
})
