import { once } from 'node:events'
import { WebSocket } from 'ws'
import { createManualClock } from '../../../src/core/clock.ts'
import { type PubSubServerOptions, startPubSubServer } from '../../../src/localnet/pubsub/ws.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createChainDouble } from './chain-double.ts'

export type Response = {
  id?: unknown
  result?: unknown
  error?: { code: number; message: string }
  method?: string
  params?: Params
}
type Params = { result: never; subscription: number }

/** A PubSub server over a chain double, on a manual clock; `open` returns a client of it. */
export async function startPubSubNode(options: Partial<PubSubServerOptions> = {}) {
  const double = createChainDouble()
  const clock = createManualClock(1_800_000_000_000)
  const server = await startPubSubServer(
    { listen: { host: '127.0.0.1', port: 0 }, ...options },
    { chain: double.chain, log: silentLogger, clock },
  )
  const clients: WebSocket[] = []
  return {
    ...double,
    server,
    clock,
    async open() {
      const socket = new WebSocket(`ws://127.0.0.1:${server.address.port}`)
      clients.push(socket)
      const texts: string[] = []
      const waiting: ((text: string) => void)[] = []
      socket.on('message', (data: Buffer) => {
        const next = waiting.shift()
        if (next) next(data.toString())
        else texts.push(data.toString())
      })
      await once(socket, 'open')
      const text = () => {
        const ready = texts.shift()
        return ready === undefined ? new Promise<string>((resolve) => waiting.push(resolve)) : Promise.resolve(ready)
      }
      let id = 0
      return {
        socket,
        text,
        next: async () => JSON.parse(await text()) as Response,
        /** Everything that arrives before the response to a request sent now. */
        async rest(): Promise<Response[]> {
          socket.send('{"jsonrpc":"2.0","id":"rest","method":"getVersion"}')
          const before: Response[] = []
          for (;;) {
            const response = JSON.parse(await text()) as Response
            if (response.id === 'rest') return before
            before.push(response)
          }
        },
        async call(method: string, params?: unknown): Promise<Response> {
          socket.send(JSON.stringify({ jsonrpc: '2.0', id: id++, method, ...(params === undefined ? {} : { params }) }))
          return JSON.parse(await text()) as Response
        },
        async raw(message: string | Buffer): Promise<string> {
          socket.send(message)
          return text()
        },
      }
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.terminate()
      await server[Symbol.asyncDispose]()
    },
  }
}
