import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../process/test-wait.ts'
import type { HttpOutcome } from './exchange.ts'
import { ok, openTestPool, startResponseServer, textOf } from './test-pool.ts'

const LARGE = 100_000

/** A server whose response to any call is too large to be held. */
async function startLarge(connectionsMax: number, waitingMax: number) {
  const server = await startResponseServer((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${LARGE}\r\n\r\n${'x'.repeat(LARGE)}`)
  })
  const on = openTestPool(server.port, { connectionsMax, waitingMax })
  return {
    server,
    ...on,
    async [Symbol.asyncDispose]() {
      on[Symbol.dispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

/** The pool, where an owner holds all it may while connections are scarce: 6 of 8; 14 more of its calls wait. */
async function startScarce() {
  const on = await startLarge(8, 64)
  const slow: HttpOutcome[] = []
  for (let call = 0; call < 20; call++) void on.call('{}', { owner: 'slow' }).then((outcome) => slow.push(outcome))
  await until('it holds all it may', () => slow.length === 6)
  return { ...on, slow }
}

/** Reads the rest of a response. */
function readAll(outcome: HttpOutcome): Promise<void> {
  return new Promise((resolve, reject) => {
    assert.ok(outcome.kind === 'reply' && outcome.rest !== undefined, textOf(outcome))
    outcome.rest.start({ onData() {}, onEnd: resolve, onFail: reject })
  })
}

test('an owner whose responses are not read leaves a quarter of the connections to the others', async () => {
  await using on = await startScarce()
  const { slow: unread } = on
  for (let round = 0; round < 20; round++) await readAll(await on.call('{}', { owner: 'quick' }))
  await readAll(await on.call())
  assert.deepEqual([unread.length, on.pool.inFlight], [6, 20])
  // What waits follows as its own responses are read.
  for (let done = 0; done < 20; done++) {
    await until('the next has begun', () => unread.length > done)
    await readAll(unread[done] as HttpOutcome)
  }
  assert.equal(on.pool.inFlight, 0)
})

test('the same where each call waited alone for its connection', async () => {
  await using on = await startLarge(8, 64)
  for (let at = 0; at < 6; at++) await on.call('{}', { owner: 'slow' })
  void on.call('{}', { owner: 'slow' })
  await readAll(await on.call('{}', { owner: 'quick' }))
  assert.deepEqual([on.pool.connections, on.pool.inFlight], [7, 7])
})

test('a call that waits for its share is sent when a connection of its owner is closed', async () => {
  await using on = await startLarge(4, 64)
  const outcomes: HttpOutcome[] = []
  for (let call = 0; call < 4; call++) void on.call('{}', { owner: 'slow' }).then((outcome) => outcomes.push(outcome))
  await until('it holds all it may', () => outcomes.length === 3)
  const [first] = outcomes
  assert.ok(first?.kind === 'reply')
  first.rest?.abort()
  await until('the last is sent', () => outcomes.length === 4)
})

test('one call that ends may let two others be sent', async () => {
  await using on = await startLarge(8, 64)
  const outcomes: HttpOutcome[] = []
  // Shorter than the time after which the connections are closed.
  const deadlineMs = 6000
  const send = (owner: string) => void on.call('{}', { owner, deadlineMs }).then((outcome) => outcomes.push(outcome))
  for (const owner of ['a', 'a', 'b', 'b', 'b', 'b']) send(owner)
  await until('six are at the server', () => outcomes.length === 6)
  send('b')
  send('a')
  await readAll(outcomes[0] as HttpOutcome)
  await until('both that waited have a result', () => outcomes.length === 8)
  assert.deepEqual(
    outcomes.map(({ kind }) => kind),
    Array.from({ length: 8 }, () => 'reply'),
  )
})

test('an owner gets only its share of the queue once that fills up', async () => {
  await using on = await startLarge(4, 8)
  const causes: string[] = []
  const call = (owner: string) => void on.call('{}', { owner }).then((outcome) => causes.push(textOf(outcome)))
  for (let at = 0; at < 20; at++) call('slow')
  // Six wait: three quarters of the queue.
  await until('the others are refused', () => causes.filter((cause) => cause === 'share').length === 14)
  call('quick')
  await until('another owner is served', () => causes.length === 18)
  assert.equal(causes.filter((cause) => cause === 'share').length, 14)
})

test('connections are opened only for calls that may use them', async () => {
  await using on = await startScarce()
  const { server, pool, call } = on
  assert.equal(pool.connections, 6)
  await readAll(await call('{}', { owner: 'quick' }))
  assert.equal(pool.connections, 7)
  // Its idle connection ends, and nothing takes its place.
  const [quick] = [...server.sockets].slice(-1)
  quick?.destroy()
  await until('it is closed', () => pool.connections < 7)
  void call('{}', { owner: 'slow' })
  assert.equal(pool.connections, 6)
})

test('a connection that cannot be opened fails a call that would have used it', async () => {
  await using on = await startScarce()
  on.server.stopListening()
  assert.equal(textOf(await on.call('{}', { owner: 'quick' })), 'connect')
  assert.deepEqual([on.slow.length, on.pool.inFlight], [6, 20])
})

test('owners whose calls wait are served in rotation, each in the order of its calls', async () => {
  const order: string[] = []
  await using server = await startResponseServer((socket, { text }) => {
    order.push(text.slice(-2))
    socket.write(ok('done'))
  })
  using on = openTestPool(server.port, { connectionsMax: 1 })
  const calls = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1', 'n1'].map((name) =>
    on.call(name, name === 'n1' ? {} : { owner: name.slice(0, 1) }),
  )
  await Promise.all(calls)
  assert.deepEqual(order, ['a1', 'b1', 'c1', 'n1', 'a2', 'b2', 'a3'])
  assert.equal(on.pool.inFlight, 0)
})
