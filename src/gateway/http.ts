import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '../access/authorize.ts'
import { CREDENTIAL_SOURCES, collectToken } from '../access/credentials.ts'
import { versionHeaders } from '../contract/versions.ts'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { splitTarget } from '../platform/http/request-headers.ts'
import type { ResponseBudget } from '../platform/http/response-budget.ts'
import type { HttpResponse } from '../platform/http/server/post.ts'
import { respondToPost } from '../platform/http/server/post-fallback.ts'
import { sendJson, sendText } from '../platform/http/server/reply.ts'
import { requestIdOf } from '../platform/http/server/request-id.ts'
import { type HttpServer, readBody, startHttpServer } from '../platform/http/server/server.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import type { AccountEndpoint, AccountEndpoints } from './account/endpoints.ts'
import type { ListenerMeter } from './metrics.ts'
import { refuseSize } from './refusal.ts'
import { createRpcPosts } from './rpc/http.ts'
import { refuse } from './rpc/http-response.ts'
import type { Rpc } from './rpc/rpc.ts'

export type RpcServerDeps = ListenerMetrics & {
  readonly meter: Pick<ListenerMeter, 'refused'>
  readonly rpc: Rpc
  readonly account: AccountEndpoints
  /** The state of the nodes, as a node's own health page reports it. */
  readonly health: () => 'ok' | 'behind' | 'unknown'
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly budget: ResponseBudget
}

/** Browsers of any origin may call, as with a node. Nothing authenticates by cookie, so credentials are never allowed. */
const CORS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'x-request-id, retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, x-ratelimit-cost',
}
const PREFLIGHT = {
  ...CORS,
  'access-control-allow-methods': 'POST, GET, OPTIONS',
  'access-control-allow-headers':
    'content-type, content-encoding, x-token, x-api-key, authorization, solana-client, x-request-id',
  'access-control-max-age': '86400',
}

/** The RPC server: JSON-RPC on `/`, the health page, and the account endpoints of a customer. */
export function startRpcServer(options: { listen: ListenerOptions }, deps: RpcServerDeps): Promise<HttpServer> {
  const { rpc, account, log, clock } = deps
  const posts = createRpcPosts({ 'x-content-type-options': 'nosniff', ...CORS }, deps)
  return startHttpServer(options, {
    headersFor: versionHeaders,
    log,
    clock,
    onRefused: deps.onRefused,
    onNotAfter: deps.onNotAfter,
    fastPathPosts: posts,
    async onRequest(request, response) {
      const { path, query } = splitTarget(request.url)
      if (path === '/' && request.method === 'POST') return respondToPost(request, response, posts)
      const requestId = requestIdOf(request, deps)
      response.setHeader('x-request-id', requestId)
      if (request.method === 'OPTIONS') return sendText(response, 204, '', PREFLIGHT)
      if (path === '/health' && isRead(request)) return sendText(response, 200, deps.health(), CORS)
      const endpoint = account.at(path)
      if (path !== '/' && endpoint === undefined) {
        return sendJson(response, 404, { error: 'not-found', request_id: requestId }, CORS)
      }
      const isGet = endpoint?.method === 'GET'
      if (isGet ? !isRead(request) : request.method !== 'POST') {
        return sendJson(
          response,
          405,
          { error: 'method-not-allowed', request_id: requestId },
          { ...CORS, allow: isGet ? 'GET' : 'POST, OPTIONS' },
        )
      }
      const head = { headers: request.rawHeaders, requestId, connection: request.socket }
      const caller = rpc.authenticate(head, collectToken(CREDENTIAL_SOURCES.rpc, head.headers, query), clock.nowMs())
      if (!('subscription' in caller)) return send(response, await caller.response)
      if (endpoint !== undefined)
        return serveEndpoint(endpoint, caller, { request, response, requestId, meter: deps.meter })
    },
  })
}

type EndpointContext = Pick<RpcServerDeps, 'meter'> & {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly requestId: string
}

async function serveEndpoint(
  endpoint: AccountEndpoint,
  caller: Caller,
  { request, response, requestId, meter }: EndpointContext,
): Promise<void> {
  const bodyBytesMax = Math.min(caller.limits.requestBytes, endpoint.bodyBytesMax ?? Number.POSITIVE_INFINITY)
  const read = endpoint.takesBody ? await readBody(request, { bodyBytesMax }) : NO_BODY
  if (!read.ok) {
    if (read.reason !== 'too-large') return
    meter.refused('requestBytes', { subscription: caller.subscription.id, code: 'too-large' })
    return send(response, refuse(refuseSize('requestBytes', bodyBytesMax), { requestId }))
  }
  const { status, body, headers } = await endpoint.respond(caller, { body: read.body, requestId })
  sendJson(response, status, body, { ...CORS, 'cache-control': 'no-store', ...headers })
}

const NO_BODY = { ok: true, body: Buffer.alloc(0) } as const

function send(response: ServerResponse, { status, body, headers, closes }: HttpResponse): void {
  if (closes === true) response.shouldKeepAlive = false
  sendText(response, status, body, { ...headers, ...CORS })
}

function isRead(request: IncomingMessage): boolean {
  return request.method === 'GET' || request.method === 'HEAD'
}
