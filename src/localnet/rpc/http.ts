import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Clock } from '../../core/clock.ts'
import { splitTarget } from '../../platform/http/request-headers.ts'
import { readBody } from '../../platform/http/server/read-body.ts'
import { sendText } from '../../platform/http/server/reply.ts'
import { startHttpServer } from '../../platform/http/server/server.ts'
import { printAddressPort } from '../../platform/net/ip-range.ts'
import type { ListenerOptions } from '../../platform/net/listener.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { Chain } from '../chain/model.ts'
import { createRpcContext, type NodeAddresses, type RpcContext } from './context.ts'
import { responseBody } from './dispatch.ts'

export type RpcServerOptions = {
  readonly listen: ListenerOptions
  /** The PubSub address, for getClusterNodes. */
  readonly pubsub?: string | undefined
}

export type RpcServerDeps = { readonly chain: Chain; readonly log: Logger; readonly clock: Clock }

export type RpcServer = AsyncDisposable & {
  readonly address: { readonly host: string; readonly port: number }
  drain(deadlineMs: number): Promise<void>
}

/** Agave's MAX_REQUEST_BODY_SIZE. */
const BODY_BYTES_MAX = 50 * 1024
/** How long a browser may cache the preflight response. */
const CORS_MAX_AGE_SECONDS = 86_400

/** JSON-RPC over HTTP with Agave's responses: jsonrpc-core's framing, plain text for everything that is not JSON-RPC. */
export async function startChainRpcServer(
  options: RpcServerOptions,
  { chain, log, clock }: RpcServerDeps,
): Promise<RpcServer> {
  const addresses: { -readonly [K in keyof NodeAddresses]: NodeAddresses[K] } = { pubsub: options.pubsub }
  const context = createRpcContext({ chain, clock, log }, addresses)
  const server = await startHttpServer(
    { listen: options.listen },
    { log, clock, onRequest: (request, response) => respondToRequest(context, request, response) },
  )
  addresses.rpc = printAddressPort(server.address.host, server.address.port)
  return {
    address: server.address,
    drain: (deadlineMs) => server.drain(deadlineMs),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

async function respondToRequest(
  context: RpcContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const cors = { 'access-control-allow-origin': '*' }
  const { path } = splitTarget(request.url)
  if (request.method === 'OPTIONS') return sendText(response, 200, '', { ...cors, ...preflightHeaders(request) })
  if (request.method === 'GET' && path === '/health') return sendText(response, 200, 'ok', cors)
  if (request.method === 'GET' && (path === '/v0/circulating-supply' || path === '/v0/total-supply')) {
    return sendText(response, 200, await readSupply(context, path), cors)
  }
  if (request.method !== 'POST') {
    return sendText(response, 405, 'Used HTTP Method is not allowed. POST or OPTIONS is required\n', {
      ...cors,
      allow: 'OPTIONS, POST',
    })
  }
  if (!isAllowedContentType(request.headers['content-type'])) {
    return sendText(
      response,
      415,
      'Supplied content type is not allowed. Content-Type: application/json is required\n',
      cors,
    )
  }
  const body = await readBody(request, { bodyBytesMax: BODY_BYTES_MAX })
  if (!body.ok) {
    if (body.reason === 'too-large') sendText(response, 413, 'request body size exceeds allowed maximum\n', cors)
    return
  }
  const reply = await responseBody(context, decodeBody(body.body))
  const headers = { ...cors, 'content-type': 'application/json; charset=utf-8' }
  sendText(response, 200, reply === undefined ? '' : `${reply}\n`, headers)
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Invalid UTF-8 is not JSON either and is treated as an empty body. */
function decodeBody(body: Buffer): string {
  try {
    return UTF8.decode(body)
  } catch {
    return ''
  }
}

/** The three spellings that jsonrpc-http-server of Agave accepts: stricter than `isJsonRequest`. */
function isAllowedContentType(contentType: string | undefined): boolean {
  return /^application\/json(; ?charset=utf-8)?$/i.test(contentType ?? '')
}

function preflightHeaders(request: IncomingMessage): OutgoingHttpHeaders {
  const requestedHeaders = request.headers['access-control-request-headers']
  return {
    allow: 'OPTIONS, POST',
    'access-control-allow-methods': 'OPTIONS, POST',
    'access-control-allow-headers':
      typeof requestedHeaders === 'string' && requestedHeaders !== '' ? requestedHeaders : '*',
    'access-control-max-age': String(CORS_MAX_AGE_SECONDS),
    vary: 'access-control-request-headers',
  }
}

/** Agave's two text endpoints: the supply in SOL. */
async function readSupply(context: RpcContext, path: string): Promise<string> {
  const request = '{"jsonrpc":"2.0","id":1,"method":"getSupply","params":[{"excludeNonCirculatingAccountsList":true}]}'
  const response = JSON.parse((await responseBody(context, request)) ?? '{}') as {
    result: { value: { circulating: number; total: number } }
  }
  const { circulating, total } = response.result.value
  return String((path.endsWith('total-supply') ? total : circulating) / 1e9)
}
