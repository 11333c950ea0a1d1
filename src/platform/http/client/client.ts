/**
 * The HTTP client for one server whose responses stream through without being held: the ClickHouse proxy and inserts, and remote commands. It is
 * node:http with an agent, because these calls are few and long, and need GET, headers and a query. JSON-RPC calls to nodes, which are many and short, go through `pool.ts`;
 * tools that make a call now and then use `json-rpc.ts`.
 */
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { Readable } from 'node:stream'

export type HttpClientOptions = {
  /** Scheme, host and port; path and query are ignored. */
  readonly url: string
  readonly connectionsMax: number
  /** How long connecting may take. */
  readonly connectMs: number
  /** Certificate authorities in PEM; without it those that Node contains. */
  readonly ca?: string[] | undefined
}

export type HttpCall = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path and query. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | undefined
  /** Aborts the call: before the response head by a rejection, after it by an error of `body`. */
  readonly signal?: AbortSignal | undefined
}

export type HttpReply = {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Read from the server only as fast as the caller reads it. */
  readonly body: Readable
}

/** The call got no response. */
export class HttpCallFailed extends Error {
  override readonly name = 'HttpCallFailed'
  /** Whether the server can have received any of the request. */
  readonly isSent: boolean
  constructor(message: string, isSent: boolean, cause: unknown) {
    super(message, { cause })
    this.isSent = isSent
  }
}

export type HttpClient = Disposable & {
  /** Rejects with HttpCallFailed. */
  send(call: HttpCall): Promise<HttpReply>
}

/** Shorter than the keep-alive of servers, so that a call rarely gets a connection that is being closed. */
const IDLE_MS = 2_000

export function createHttpClient({ url, connectionsMax, connectMs, ca }: HttpClientOptions): HttpClient {
  const { protocol, hostname, port } = new URL(url)
  const settings = { keepAlive: true, maxSockets: connectionsMax, timeout: IDLE_MS }
  const isSecure = protocol === 'https:'
  const agent = isSecure
    ? new HttpsAgent({ ...settings, ...(ca === undefined ? {} : { ca }) })
    : new HttpAgent(settings)
  const host = hostname.replace(/^\[|\]$/g, '')

  function send({ method, target, headers, body, signal }: HttpCall): Promise<HttpReply> {
    const { promise, resolve, reject } = Promise.withResolvers<HttpReply>()
    let isConnected = false
    const call = (isSecure ? requestHttps : requestHttp)({
      agent,
      host,
      port: port === '' ? undefined : Number(port),
      path: target,
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-length': String(body.byteLength) }) },
      signal,
      timeout: connectMs,
    })
    call.on('socket', (socket) => {
      const connected = (): void => {
        isConnected = true
        // A query may compute for long without sending a byte: from here on only the caller's signal ends the call.
        call.setTimeout(0)
      }
      if (socket.connecting) socket.once(isSecure ? 'secureConnect' : 'connect', connected)
      else connected()
    })
    call.on('timeout', () => void call.destroy(new Error('no connection in time')))
    call.on('error', (cause) =>
      reject(new HttpCallFailed(`no response from the server: ${cause.message}`, isConnected, cause)),
    )
    // Also without an error: after 101 Switching Protocols node:http closes the connection and reports nothing else.
    call.on('close', () => reject(new HttpCallFailed('no response from the server: closed', isConnected, undefined)))
    call.on('response', (response: IncomingMessage) =>
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: response }),
    )
    call.end(body)
    return promise
  }

  return { send, [Symbol.dispose]: () => agent.destroy() }
}

/** The whole body as text, for small responses. Throws above the limit. */
export async function readReplyText({ body }: HttpReply, bytesMax: number): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of body as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > bytesMax) throw new RangeError(`a response of more than ${bytesMax} bytes`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}
