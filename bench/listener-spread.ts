import { fork } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { reservePort } from '../src/platform/net/reserve-port.ts'
import type { ListenerThreadData } from '../src/platform/net/test-listener-thread.ts'
import { startWorker } from '../src/platform/process/worker.ts'

/**
 * How the kernel spreads connections over the threads that listen on one port: `node bench/listener-spread.ts`. Each client connection has a port of its
 * own on loopback, and stays open until its round ends. The clients are in a process of their own.
 */
const COUNTS = [10, 100, 1000, 10_000]
const THREADS = [2, 4]

if (process.send === undefined) await measure()
else process.on('message', ({ port, count }: { port: number; count: number }) => void connectAll(port, count))

async function measure(): Promise<void> {
  for (const threads of THREADS) {
    for (const count of COUNTS) {
      await using reserved = await reservePort({ host: '127.0.0.1', port: 0 })
      await using opening = new AsyncDisposableStack()
      const accepted = Array.from({ length: threads }, () => new Int32Array(new SharedArrayBuffer(4)))
      const { host, port } = reserved
      await Promise.all(
        accepted.map(
          (own) =>
            new Promise<void>((resolve, reject) => {
              const stopping = new Int32Array(new SharedArrayBuffer(4))
              const data: ListenerThreadData = { host, port, busyMs: 0, stopping, accepted: own }
              const entry = new URL('../src/platform/net/test-listener-thread.ts', import.meta.url)
              opening.use(startWorker(entry, data, { onMessage: () => resolve(), onDeath: reject }))
            }),
        ),
      )
      const clients = fork(import.meta.filename, { execArgv: [] })
      clients.send({ port, count })
      await once(clients, 'message')
      clients.disconnect()
      await once(clients, 'exit')
      const shares = accepted.map((own) => Atomics.load(own, 0)).toSorted((a, b) => b - a)
      const mean = count / threads
      const worst = Math.round((100 * (shares[0] ?? 0)) / mean)
      process.stdout.write(
        `${threads} threads, ${count} connections: ${shares.join(' ')}; the most loaded has ${worst} % of the mean\n`,
      )
    }
  }
}

/** Connects in groups, waits for an echo of each, and reports when all are open. */
async function connectAll(port: number, count: number): Promise<void> {
  const GROUP = 100
  const sockets: Socket[] = []
  for (let from = 0; from < count; from += GROUP) {
    const group = Array.from({ length: Math.min(GROUP, count - from) }, () => connect(port, '127.0.0.1'))
    sockets.push(...group)
    await Promise.all(
      group.map((socket) => {
        socket.write('x')
        return once(socket, 'data')
      }),
    )
  }
  process.send?.('open')
  for (const socket of sockets) socket.destroy()
}
