import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Clock } from '../../../core/clock.ts'
import { createPinnedAddress } from '../../net/pinned-address.ts'
import { systemClock } from '../../process/clock.ts'
import type { HttpOutcome } from './exchange.ts'
import { createHttpPool, type HttpPoolOptions, type HttpRequest } from './pool.ts'

export type Response = (socket: Socket, request: { text: string; number: number; connection: number }) => void

/** For tests: a server that calls `respond` for each complete request. */
export async function startResponseServer(respond: Response, tls?: { key: string; cert: string }) {
  const sockets = new Set<Socket>()
  const seen: string[] = []
  let connections = 0
  const accept = (socket: Socket) => {
    sockets.add(socket)
    connections += 1
    const connection = connections
    let text = ''
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      for (;;) {
        const head = /^([\s\S]*?)\r\ncontent-length: (\d+)\r\n\r\n/.exec(text)
        const end = head === null ? 0 : head[0].length + Number(head[2])
        if (head === null || text.length < end) return
        const request = text.slice(0, end)
        text = text.slice(end)
        seen.push(request)
        respond(socket, { text: request, number: seen.length, connection })
      }
    })
  }
  const server = tls ? createTlsServer(tls, accept) : createServer(accept)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as { port: number }).port,
    seen,
    sockets,
    connections: () => connections,
    /** Refuses new connections; open ones stay. */
    stopListening: () => void server.close(),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      const closed = once(server, 'close')
      server.close()
      await closed
    },
  }
}

/** For tests: a pool of connections to a loopback port. */
export function openTestPool(
  port: number,
  options: HttpPoolOptions = {},
  clock: Clock = systemClock,
  host = '127.0.0.1',
) {
  const address = createPinnedAddress(
    { host, port, secure: options.ca !== undefined, path: '/rpc' },
    { allowPrivate: true },
    { lookup: async () => ['127.0.0.1'] },
  )
  const pool = createHttpPool(options, { clock, address })
  const call = (text = '{}', request: Partial<HttpRequest> = {}) =>
    new Promise<HttpOutcome>((resolve) => {
      pool.call({ body: Buffer.from(text), deadlineMs: 10_000, ...request }, resolve)
    })
  return { pool, call, [Symbol.dispose]: () => pool[Symbol.dispose]() }
}

export const ok = (body: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
export const textOf = (outcome: HttpOutcome) => (outcome.kind === 'reply' ? outcome.body.toString() : outcome.cause)
