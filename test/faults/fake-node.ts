import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import type { GrpcCall } from '../../src/platform/grpc/call.ts'
import { startGrpcServer } from '../../src/platform/grpc/server.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'

/** The scripted response to one call: a result or error as JSON text, a complete body, or none. */
export type FakeResponse =
  | { readonly result: string }
  | { readonly error: string }
  | { readonly status: number; readonly body: string; readonly headers?: Readonly<Record<string, string>> }
  | 'hang'
  | 'reset'

export type SeenRequest = {
  readonly url: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
  readonly method: string
}

/** A node whose responses the test scripts, and which records every request. */
export type FakeNode = AsyncDisposable & {
  readonly rpc: string
  readonly ws: string
  readonly grpc: string
  readonly ports: { readonly rpc: number; readonly ws: number; readonly grpc: number }
  /** The result of getSlot; `tick` notifies slot subscriptions. */
  slot: number
  shredSlot: number | undefined
  /** The result of getRecentPerformanceSamples, as JSON text. */
  samples: string
  /** Called for every call but the probes; undefined gives the default response. */
  respond: (method: string, params: unknown, id: unknown) => FakeResponse | undefined
  /** Called for the probes too, for a node that is down or slow altogether. */
  fault: FakeResponse | undefined
  /** Delay of responses to calls; probes get theirs at once. */
  hold: Promise<void> | undefined
  onGrpcCall: (call: GrpcCall) => void
  /** Open connections for JSON-RPC. */
  readonly rpcConnections: number
  /** Calls without the probes. */
  readonly calls: SeenRequest[]
  /** All of them. */
  readonly requests: SeenRequest[]
  readonly handshakes: Readonly<Record<string, string | string[] | undefined>>[]
  /** The targets of the WebSocket handshakes. */
  readonly handshakeUrls: string[]
  /** Every text that came over WebSocket, slot subscriptions of the gateway left out. */
  readonly texts: string[]
  readonly wsClients: Set<WebSocket>
  /** Live subscriptions by id, with the request that made them. */
  readonly subscriptions: Map<number, { readonly method: string; readonly params: string; readonly client: WebSocket }>
  /** Advances to the next slot and notifies it. */
  tick(by?: number): void
  /** Sends a notification for every subscription of this method. */
  notify(method: string, result: string): void
  /** Refuses subscriptions with this error when set; a function decides for each. */
  wsError: string | (() => string | undefined) | undefined
  /** Delay of responses to subscribes. */
  wsHold: Promise<void> | undefined
  /** How it reads JSON: JSON.parse takes the last of duplicate members. */
  parse: (text: string) => unknown
}

type Question = { method?: string; params?: unknown; id?: unknown }

const PROBES = ['getSlot', 'getMaxShredInsertSlot', 'getRecentPerformanceSamples']

export async function startFakeNode(slot = 1000): Promise<FakeNode> {
  const stack = new AsyncDisposableStack()
  const sockets = new Set<Socket>()
  const wsClients = new Set<WebSocket>()
  let nextSubscription = 100

  const http = createServer((request, response) => void serve(request, response))
  http.keepAliveTimeout = 60_000
  http.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  stack.defer(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => void http.close(resolve))
  })
  const wss = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(wss, 'listening')
  wss.on('connection', accept)
  stack.defer(async () => {
    for (const client of wsClients) client.terminate()
    await new Promise((resolve) => wss.close(resolve))
  })
  const grpc = stack.use(
    await startGrpcServer(
      { listen: { host: '127.0.0.1', port: 0 } },
      { log: silentLogger, clock: systemClock, onCall: (call) => node.onGrpcCall(call) },
    ),
  )

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    request.on('error', () => {})
    response.on('error', () => {})
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    const parsed = node.parse(body) as Question | Question[]
    const seen = { url: request.url ?? '', headers: request.headers, body }
    const responses = await Promise.all([parsed].flat().map((question) => responseTo(question, seen)))
    if (responses.includes('hang')) return
    if (responses.includes('reset')) return void request.socket.resetAndDestroy()
    const [first] = responses
    if (typeof first === 'object' && 'status' in first) {
      response.writeHead(first.status, { 'content-type': 'text/html', ...first.headers }).end(first.body)
      return
    }
    const texts = responses.map((reply) => (typeof reply === 'object' && 'text' in reply ? reply.text : ''))
    response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' })
    response.end(Array.isArray(parsed) ? `[${texts.join(',')}]\n` : `${texts[0] ?? ''}\n`)
  }

  /** The text of the response, or what else happens to the connection. */
  async function responseTo(
    { method = '', params, id }: Question,
    seen: Omit<SeenRequest, 'method'>,
  ): Promise<{ text: string } | Exclude<FakeResponse, { result: string } | { error: string }>> {
    node.requests.push({ ...seen, method })
    const isProbe = PROBES.includes(method) && id === 1
    if (!isProbe) {
      node.calls.push({ ...seen, method })
      await node.hold
    }
    const response = node.fault ?? (isProbe ? undefined : node.respond(method, params, id)) ?? usual(method)
    if (typeof response === 'string' || 'status' in response) return response
    const rest = 'result' in response ? `"result":${response.result}` : `"error":${response.error}`
    return { text: `{"jsonrpc":"2.0",${rest},"id":${JSON.stringify(id ?? null)}}` }
  }

  function usual(method: string): FakeResponse {
    if (method === 'getSlot') return { result: String(node.slot) }
    if (method === 'getMaxShredInsertSlot') {
      return node.shredSlot === undefined
        ? { error: '{"code":-32601,"message":"Method not found"}' }
        : { result: String(node.shredSlot) }
    }
    if (method === 'getRecentPerformanceSamples') return { result: node.samples }
    return { result: `{"context":{"apiVersion":"4.2.1","slot":${node.slot}},"value":null}` }
  }

  function accept(client: WebSocket, request: IncomingMessage): void {
    wsClients.add(client)
    node.handshakes.push(request.headers)
    node.handshakeUrls.push(request.url ?? '')
    client.on('error', () => {})
    client.on('close', () => {
      wsClients.delete(client)
      for (const [id, entry] of node.subscriptions) if (entry.client === client) node.subscriptions.delete(id)
    })
    client.on('message', (data) => {
      const text = (data as Buffer).toString()
      const { method, params, id } = node.parse(text) as { method: string; params?: unknown[]; id: number }
      if (method !== 'slotSubscribe') node.texts.push(text)
      if (method.endsWith('Unsubscribe')) {
        node.subscriptions.delete(Number(params?.[0]))
        client.send(`{"jsonrpc":"2.0","result":true,"id":${id}}`)
        return
      }
      if (node.wsHold === undefined) subscribe(client, method, params, id)
      else void node.wsHold.then(() => subscribe(client, method, params, id))
    })
  }

  function subscribe(client: WebSocket, method: string, params: unknown, id: number): void {
    const error =
      method === 'slotSubscribe' ? undefined : typeof node.wsError === 'function' ? node.wsError() : node.wsError
    if (error !== undefined) {
      client.send(`{"jsonrpc":"2.0","error":${error},"id":${id}}`)
      return
    }
    const subscription = sameOn(client, method, JSON.stringify(params)) ?? nextSubscription++
    node.subscriptions.set(subscription, { method, params: JSON.stringify(params), client })
    client.send(`{"jsonrpc":"2.0","result":${subscription},"id":${id}}`)
  }

  /** Equal subscriptions have one id, as at a real node. */
  function sameOn(client: WebSocket, method: string, params: string): number | undefined {
    for (const [id, entry] of node.subscriptions) {
      if (entry.client === client && entry.method === method && entry.params === params) return id
    }
    return undefined
  }

  const port = (server: { address(): unknown }) => (server.address() as { port: number }).port
  const ports = { rpc: port(http), ws: port(wss), grpc: grpc.address.port }
  const node: FakeNode = {
    rpc: `http://127.0.0.1:${ports.rpc}`,
    ws: `ws://127.0.0.1:${ports.ws}`,
    grpc: `http://127.0.0.1:${ports.grpc}`,
    ports,
    slot,
    shredSlot: undefined,
    samples: '[]',
    respond: () => undefined,
    fault: undefined,
    hold: undefined,
    onGrpcCall: (call) => call.end({ code: 12, message: 'nothing here' }),
    get rpcConnections() {
      return sockets.size
    },
    calls: [],
    requests: [],
    handshakes: [],
    handshakeUrls: [],
    texts: [],
    wsClients,
    subscriptions: new Map(),
    wsError: undefined,
    wsHold: undefined,
    parse: (text) => JSON.parse(text) as unknown,
    tick(by = 1) {
      node.slot += by
      node.notify('slotSubscribe', `{"parent":${node.slot - 1},"root":${node.slot - 32},"slot":${node.slot}}`)
    },
    notify(method, result) {
      const name = method.replace('Subscribe', 'Notification')
      for (const [id, entry] of node.subscriptions) {
        if (entry.method !== method) continue
        entry.client.send(`{"jsonrpc":"2.0","method":"${name}","params":{"result":${result},"subscription":${id}}}`)
      }
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
  return node
}
