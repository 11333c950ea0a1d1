import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { until } from '../process/test-wait.ts'
import { startWorker } from '../process/worker.ts'
import { openListener } from './listener.ts'
import { reservePort } from './reserve-port.ts'
import type { ListenerThreadData } from './test-listener-thread.ts'

const echo = (socket: Socket) => void socket.on('data', (chunk) => socket.write(chunk))

test('stopAccepting serves the connections that wait in the queue of the kernel', async () => {
  const WAITING = 300
  await using listener = await openListener(
    { host: '127.0.0.1', port: 0 },
    { onConnection: echo, caps: { isExempt: () => true } },
  )
  // The clients are in a thread, since this one does not turn until all are connected.
  const connected = new Int32Array(new SharedArrayBuffer(4))
  const clients = new Worker(
    `
    const { connect } = require('node:net')
    const { parentPort, workerData: { port, count, connected } } = require('node:worker_threads')
    const outcomes = {}
    let open = count
    for (let n = 0; n < count; n++) {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write('x')
        Atomics.add(connected, 0, 1)
        Atomics.notify(connected, 0)
      })
      const done = (outcome) => {
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
        socket.destroy()
        if (--open === 0) parentPort.postMessage(outcomes)
      }
      socket.once('data', () => done('served')).once('error', ({ code }) => done(code))
    }`,
    { eval: true, workerData: { port: listener.address.port, count: WAITING, connected } },
  )
  const outcomes = once(clients, 'message')
  for (let have = 0; have < WAITING; have = Atomics.load(connected, 0)) {
    assert.notEqual(Atomics.wait(connected, 0, have, 30_000), 'timed-out')
  }
  await listener.stopAccepting()
  assert.deepEqual((await outcomes)[0], { served: WAITING })
  await clients.terminate()
  await assert.rejects(once(connect(listener.address.port, '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' })
})

test('stopAccepting ends while connections arrive all the time', async () => {
  await using listener = await openListener(
    { host: '127.0.0.1', port: 0 },
    { onConnection: echo, caps: { isExempt: () => true } },
  )
  let isOver = false
  // Each turn connects one more, so that no turn is without a connection.
  const connectMore = () => {
    const socket = connect(listener.address.port, '127.0.0.1', () => socket.destroy()).on('error', () => {})
    if (!isOver) setImmediate(connectMore)
  }
  connectMore()
  await listener.stopAccepting()
  isOver = true
})

test('of two threads on one port one stops while clients connect: none that was connected before is reset', async (t) => {
  const BUSY_MS = 100
  await using reserved = await reservePort({ host: '127.0.0.1', port: 0 })
  const { host, port } = reserved
  await using opening = new AsyncDisposableStack()
  const threads = await Promise.all(
    [0, 1].map(async () => {
      const stopping = new Int32Array(new SharedArrayBuffer(4))
      const accepted = new Int32Array(new SharedArrayBuffer(4))
      const heard = new Set<string>()
      const worker = opening.use(
        startWorker<'stop', string>(
          new URL('./test-listener-thread.ts', import.meta.url),
          { host, port, busyMs: BUSY_MS, stopping, accepted } satisfies ListenerThreadData,
          { onMessage: (message) => void heard.add(message), onDeath: (error) => assert.fail(error) },
        ),
      )
      await until('it listens', () => heard.has('listening'))
      return { worker, stopping, accepted, heard }
    }),
  )
  const [one, other] = threads as [(typeof threads)[0], (typeof threads)[0]]

  const counts = { before: 0, served: 0, reset: 0, resetLater: 0, open: 0 }
  let isOver = false
  const connectMore = () => {
    if (counts.open < 200) {
      counts.open += 1
      let isBefore = false
      const socket = connect(port, host, () => {
        isBefore = Atomics.load(one.stopping, 0) === 0
        if (isBefore) counts.before += 1
        socket.write('x')
      })
      socket.once('data', () => {
        if (isBefore) counts.served += 1
        socket.destroy()
      })
      socket.on('error', () => {
        if (isBefore) counts.reset += 1
        else counts.resetLater += 1
      })
      socket.once('close', () => void (counts.open -= 1))
    }
    if (!isOver) setImmediate(connectMore)
  }
  connectMore()
  await until('both threads accept', () => threads.every(({ accepted }) => Atomics.load(accepted, 0) > 100))
  one.worker.post('stop')
  await until('one has stopped', () => one.heard.has('stopped'))
  const acceptedAtStop = Atomics.load(other.accepted, 0)
  await until('the other goes on', () => Atomics.load(other.accepted, 0) > acceptedAtStop + 100)
  isOver = true
  await until('every client has its result', () => counts.open === 0)
  t.diagnostic(JSON.stringify(counts))
  assert.ok(counts.before > 200)
  assert.deepEqual([counts.served, counts.reset], [counts.before, 0])
})
