import { once } from 'node:events'
import { WebSocket } from 'ws'

export type WsTestClient = {
  readonly socket: WebSocket
  /** The number of notifications per subscription. */
  readonly reported: Map<number, number>
  /** Gap notifications, in order. */
  readonly gaps: { readonly subscription: number; readonly result: Record<string, unknown> }[]
  /** Sends a request and returns its response, whatever arrives in between. */
  call(method: string, params?: unknown): Promise<{ result?: unknown; error?: { code: number; message: string } }>
  closed: Promise<number>
}

/** A client that counts notifications, for tests with many subscriptions. */
export async function openWsTestClient(url: string, headers: Record<string, string>): Promise<WsTestClient> {
  const socket = new WebSocket(url, { headers })
  const reported = new Map<number, number>()
  const gaps: WsTestClient['gaps'] = []
  const waiting = new Map<number, (response: never) => void>()
  let nextId = 1
  type Message = { id?: number; method?: string; params?: { subscription: number; result: Record<string, unknown> } }
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as Message
    if (message.id !== undefined) waiting.get(message.id)?.(message as never)
    else if (message.method === 'gapNotification' && message.params) gaps.push(message.params)
    else if (message.params) {
      reported.set(message.params.subscription, (reported.get(message.params.subscription) ?? 0) + 1)
    }
  })
  const closed = new Promise<number>((resolve) => socket.on('close', resolve))
  await once(socket, 'open')
  socket.on('error', () => {})
  return {
    socket,
    reported,
    gaps,
    closed,
    call(method, params = []) {
      const id = nextId++
      return new Promise((resolve, reject) => {
        waiting.set(id, resolve)
        void closed.then((code) => reject(new Error(`closed with ${code} while waiting for ${method}`)))
        socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
      })
    },
  }
}
