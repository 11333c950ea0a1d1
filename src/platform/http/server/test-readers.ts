import type { Socket } from 'node:net'
import { type Duplex, duplexPair } from 'node:stream'
import type { Clock } from '../../../core/clock.ts'
import { silentLogger } from '../../telemetry/logger.ts'
import { createFastPathServer } from './fast-path-server.ts'
import type { PostHandler } from './post.ts'
import { respondToPost } from './post-fallback.ts'
import { sendJson } from './reply.ts'
import { type HttpServer, startHttpServer } from './server.ts'

/** A request as a parser read it. `body` is undefined where it did not end. */
export type ReadRequest = {
  readonly method: string
  readonly target: string
  readonly headers: readonly string[]
  body: string | undefined
}

export type ReadResult = {
  readonly requests: ReadRequest[]
  /** The refusal by the parser, if any. */
  readonly refusal: string | undefined
  readonly text: string
}

/** For tests: the fast path and node:http side by side, fed with the same bytes in memory. */
export type HttpReaders = AsyncDisposable & {
  /** The fast path, with node:http as fallback. */
  fastPath(chunks: readonly Buffer[]): Promise<ReadResult & { handedOver: boolean }>
  /** node:http only. */
  node(chunks: readonly Buffer[]): Promise<ReadResult>
}

export async function startHttpReaders(clock: Clock): Promise<HttpReaders> {
  // By connection, which both parsers pass with every head.
  const seen = new WeakMap<object, ReadRequest[]>()
  const handed = new WeakSet<object>()
  const record = (connection: object, request: ReadRequest) => {
    seen.get(connection)?.push(request)
    return request
  }
  const handler: PostHandler = {
    headers: { 'x-common': 'yes' },
    validate({ target, headers, connection }) {
      const request = record(connection, { method: 'POST', target, headers, body: undefined })
      const response = { status: 200, headers: { 'content-type': 'application/json' }, body: '{}' }
      return {
        requestId: 'id',
        bodyBytesMax: 65_536,
        tooLarge: () => ({ ...response, status: 413, body: '{"error":"too-large"}' }),
        onBody(body, sink) {
          request.body = body.toString('latin1')
          sink.respond(response)
        },
      }
    },
  }
  const server: HttpServer = await startHttpServer(
    // Some requests never end for node:http (an ignored upgrade, a truncated body); the timeouts end them for both.
    { listen: { host: '127.0.0.1', port: 0 }, headersTimeoutMs: 4000, requestTimeoutMs: 4000 },
    {
      log: silentLogger,
      clock,
      async onRequest(request, response) {
        const { method = '', url = '', rawHeaders } = request
        if (method === 'POST' && /^\/(\?|$)/.test(url)) return respondToPost(request, response, handler)
        // A response before the end of the body would close the connection, and its end comes with the head or behind it.
        request.once('end', () => {
          record(request.socket, { method, target: url, headers: rawHeaders, body: undefined })
          sendJson(response, 200, {})
        })
        request.resume()
      },
    },
  )
  const fastPath = createFastPathServer(
    { headersTimeoutMs: 5000, requestTimeoutMs: 15_000, keepAliveMs: 65_000, requestsPerConnectionMax: 10_000 },
    {
      handler,
      clock,
      log: silentLogger,
      isDraining: () => false,
      handOver(socket) {
        handed.add(socket)
        server.handleConnection(socket)
      },
    },
  )

  async function run(
    chunks: readonly Buffer[],
    handleConnection: (socket: Socket) => void,
  ): Promise<ReadResult & { socket: object }> {
    const [client, socket] = duplexPair()
    const requests: ReadRequest[] = []
    seen.set(socket, requests)
    const text = readAll(client)
    handleConnection(socket as unknown as Socket)
    for (const chunk of chunks) {
      client.write(chunk)
      // Responses are written at the end of turns: waiting makes the order deterministic.
      for (let turns = 0; turns < TURNS; turns++) await nextTurn()
    }
    client.end()
    const responses = await within(HANG_MS, text, chunks)
    return { requests, refusal: refusalIn(responses), text: responses, socket }
  }

  return {
    async fastPath(chunks) {
      const { socket, ...result } = await run(chunks, fastPath.handleConnection)
      return { ...result, handedOver: handed.has(socket) }
    },
    node: (chunks) => run(chunks, server.handleConnection),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** A refusal by the parser has an error body and is the last response. */
function refusalIn(responses: string): string | undefined {
  return /HTTP\/1\.1 (4\d\d) [^]*\r\n\r\n\{"error":"([^"]*)"(?:,"message":"[^"]*")?\}$/
    .exec(responses)
    ?.slice(1)
    .join(' ')
}

function readAll(stream: Duplex): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    stream.setEncoding('latin1')
    stream.on('data', (chunk: string) => {
      text += chunk
    })
    stream.on('error', () => {})
    stream.on('end', () => resolve(text))
    stream.on('close', () => resolve(text))
  })
}

const HANG_MS = 30_000
/** More than the requests of a run take. */
const TURNS = 24

async function within<T>(ms: number, result: Promise<T>, chunks: readonly Buffer[]): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new Error(`no end of the response to ${JSON.stringify(chunks.map(String))}`)),
    ms,
  )
  try {
    return await Promise.race([result, promise])
  } finally {
    clearTimeout(timer)
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
