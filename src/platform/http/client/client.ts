import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { Readable } from 'node:stream'

export type HttpClientOptions = {
  /** Scheme, host and port; what stands after it is not used. */
  readonly url: string
  readonly connectionsMax: number
  /** How long making a connection may take. */
  readonly connectMs: number
}

export type HttpCall = {
  readonly method: 'GET' | 'POST'
  /** Path and query. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | undefined
  /** Ends the call at any point: before the answer by a rejection, after its head by an end of `body` with an error. */
  readonly signal?: AbortSignal | undefined
}

export type HttpReply = {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Not read before somebody reads it, and only as fast. */
  readonly body: Readable
}

/** No answer came. */
export class HttpCallFailed extends Error {
  override readonly name = 'HttpCallFailed'
  /** Whether the server can have seen anything of the call. */
  readonly isSent: boolean
  constructor(message: string, isSent: boolean, cause: unknown) {
    super(message, { cause })
    this.isSent = isSent
  }
}

/** A client of one server whose answers are streams: nothing of them is kept, and what the reader does not take waits at the server. */
export type HttpClient = Disposable & {
  /** Rejects with HttpCallFailed. */
  send(call: HttpCall): Promise<HttpReply>
}

/** Shorter than what servers wait, so that a call rarely meets a connection that is being closed. */
const IDLE_MS = 2_000

export function createHttpClient({ url, connectionsMax, connectMs }: HttpClientOptions): HttpClient {
  const { protocol, hostname, port } = new URL(url)
  const settings = { keepAlive: true, maxSockets: connectionsMax, timeout: IDLE_MS }
  const isSecure = protocol === 'https:'
  const agent = isSecure ? new HttpsAgent(settings) : new HttpAgent(settings)
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
        // A query may compute for long without a byte: from here on the caller's signal says when it is enough.
        call.setTimeout(0)
      }
      if (socket.connecting) socket.once(isSecure ? 'secureConnect' : 'connect', connected)
      else connected()
    })
    call.on('timeout', () => void call.destroy(new Error('no connection in time')))
    call.on('error', (cause) =>
      reject(new HttpCallFailed(`the server did not answer: ${cause.message}`, isConnected, cause)),
    )
    call.on('response', (response: IncomingMessage) =>
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: response }),
    )
    call.end(body)
    return promise
  }

  return { send, [Symbol.dispose]: () => agent.destroy() }
}

/** The whole body as text, for answers that are known to be small. Throws above the limit. */
export async function readReplyText({ body }: HttpReply, bytesMax: number): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of body as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > bytesMax) throw new RangeError(`an answer of more than ${bytesMax} bytes`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}
