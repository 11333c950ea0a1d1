import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2'
import { Client, credentials, Metadata, type ServiceError, type StatusObject } from '@grpc/grpc-js'
import type { Plans } from '../../../src/access/plan.ts'
import { type Connections, createConnections } from '../../../src/gateway/account/connections.ts'
import type { DecodedStreams } from '../../../src/gateway/geyser/decoded/streams.ts'
import { type GrpcServer, type GrpcServerOptions, startGeyserServer } from '../../../src/gateway/geyser/grpc.ts'
import { gatewayMetrics } from '../../../src/gateway/metrics.ts'
import { createAuthTarpit } from '../../../src/platform/net/auth-tarpit.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { createLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry, type MetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import { type NodeOptionsInput, parseUpstreamsOptions } from '../../../src/upstreams/options.ts'
import { startUpstreams, type Upstreams } from '../../../src/upstreams/service.ts'
import { type Gateway, startGateway } from './start.ts'

export const SUBSCRIBE = '/geyser.Geyser/Subscribe'
export const PING = '/geyser.Geyser/Ping'

export type GrpcGateway = AsyncDisposable & {
  readonly gateway: Gateway
  readonly server: GrpcServer
  readonly upstreams: Upstreams
  readonly connections: Connections
  /** Metrics of the server and its upstreams. */
  readonly registry: MetricsRegistry
  readonly port: number
  readonly client: Client
  /** The log of the server and its upstreams. */
  log(): string
}

/** A gRPC server on a free port, with the access of a gateway. */
export async function startGrpcGateway(
  nodes: NodeOptionsInput[],
  options: Partial<GrpcServerOptions> = {},
  plans?: Plans,
  decoded?: DecodedStreams,
): Promise<GrpcGateway> {
  await using opening = new AsyncDisposableStack()
  const gateway = opening.use(await startGateway([], plans))
  const registry = opening.use(createMetricsRegistry())
  let lines = ''
  const log = createLogger({ level: 'trace', destination: { write: (line: string) => (lines += line) } })
  const deps = { log, clock: systemClock, random: secureRandom, registry, env: {} }
  const upstreams = opening.use(await startUpstreams(parseUpstreamsOptions({ nodes, allowPrivate: true }), deps))
  const connections = createConnections(deps)
  const server = opening.use(
    await startGeyserServer(
      { listen: { host: '127.0.0.1', port: 0 }, ...options },
      {
        ...deps,
        access: gateway.access,
        upstreams,
        connections,
        tarpit: createAuthTarpit({ failuresMax: Number.POSITIVE_INFINITY }, deps.clock),
        metrics: gatewayMetrics(registry),
        decoded,
        onRefused() {},
        onNotAfter() {},
      },
    ),
  )
  const client = new Client(`127.0.0.1:${server.address.port}`, credentials.createInsecure())
  opening.defer(() => client.close())
  const opened = opening.move()
  return {
    gateway,
    server,
    upstreams,
    connections,
    registry,
    port: server.address.port,
    client,
    log: () => lines,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

export function tokenMetadata(token: string): Metadata {
  const metadata = new Metadata()
  metadata.set('x-token', token)
  return metadata
}

const raw = (bytes: Buffer) => bytes

export type UnaryOutcome = {
  readonly error: ServiceError | null
  readonly response: Buffer | undefined
  readonly metadata: Metadata
}

export function unary(client: Client, path: string, message: Uint8Array, metadata: Metadata): Promise<UnaryOutcome> {
  return new Promise((resolve) => {
    let initial = new Metadata()
    const call = client.makeUnaryRequest(path, raw, raw, Buffer.from(message), metadata, (error, response) =>
      resolve({ error, response, metadata: initial }),
    )
    call.on('metadata', (given: Metadata) => {
      initial = given
    })
  })
}

/** A stream that records its messages. */
export function openStream(client: Client, path: string, metadata: Metadata) {
  const call = client.makeBidiStreamRequest(path, raw, raw, metadata)
  const messages: Buffer[] = []
  const ended = Promise.withResolvers<StatusObject>()
  const headers = Promise.withResolvers<Metadata>()
  call.on('data', (message: Buffer) => messages.push(message))
  call.on('error', () => {})
  call.on('metadata', headers.resolve)
  call.on('status', ended.resolve)
  return {
    call,
    messages,
    ended: ended.promise,
    headers: headers.promise,
    send: (bytes: Uint8Array) => call.write(Buffer.from(bytes)),
  }
}

export type RawResponse = {
  readonly headers: IncomingHttpHeaders
  readonly trailers: IncomingHttpHeaders
  readonly body: Buffer
  /** The status came with the first and only block of headers. */
  readonly isTrailersOnly: boolean
  readonly code: number
  readonly message: string
}

/** One call over raw HTTP/2, with headers as a list so that one can occur twice. */
export async function rawCall(
  port: number,
  path: string,
  headers: readonly [string, string][],
  body: Uint8Array,
): Promise<RawResponse> {
  const session: ClientHttp2Session = connect(`http://127.0.0.1:${port}`, {
    // Otherwise a second authorization would not leave.
    strictSingleValueFields: false,
  } as never)
  session.on('error', () => {})
  const flat = [
    [':method', 'POST'],
    [':path', path],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
    ...headers,
  ].flat()
  try {
    return await new Promise<RawResponse>((resolve, reject) => {
      const stream = session.request(flat as never)
      let response: IncomingHttpHeaders = {}
      let trailers: IncomingHttpHeaders | undefined
      const chunks: Buffer[] = []
      stream.on('response', (given) => (response = given))
      stream.on('trailers', (given) => (trailers = given))
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('error', reject)
      stream.on('close', () => {
        const reported = trailers ?? response
        resolve({
          headers: response,
          trailers: trailers ?? {},
          body: Buffer.concat(chunks),
          isTrailersOnly: trailers === undefined,
          code: Number(reported['grpc-status']),
          message: decodeURIComponent(String(reported['grpc-message'] ?? '')),
        })
      })
      stream.end(body)
    })
  } finally {
    session.destroy()
  }
}
