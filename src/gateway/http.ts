import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '../access/callers.ts'
import { CREDENTIAL_SOURCES, collectToken } from '../access/credentials.ts'
import type { DocsUrl } from '../contract/errors.ts'
import { versionHeaders } from '../contract/versions.ts'
import { HeldBody, type HeldBytes } from '../platform/http/held-bytes.ts'
import {
  contentFieldsOf,
  ENCODING_REFUSED,
  isEncoded,
  isJsonRequest,
  JSON_REQUIRED,
  splitTarget,
} from '../platform/http/request-headers.ts'
import { createPathRules, type PathRefusal, sendPathRefusal } from '../platform/http/server/path-rules.ts'
import type { HttpResponse } from '../platform/http/server/post.ts'
import { respondToPost } from '../platform/http/server/post-fallback.ts'
import { readBody } from '../platform/http/server/read-body.ts'
import { sendJson, sendText } from '../platform/http/server/reply.ts'
import { requestIdOf } from '../platform/http/server/request-id.ts'
import { type HttpServer, startHttpServer } from '../platform/http/server/server.ts'
import type { StaticFiles } from '../platform/http/server/static-file.ts'
import type { AuthTarpit } from '../platform/net/auth-tarpit.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { RefusalRecorder, RefusedRequest } from '../platform/telemetry/refusal-log.ts'
import type { AccountEndpoint } from './account/endpoint.ts'
import { ACCOUNT_PATHS, type AccountEndpoints } from './account/endpoints.ts'
import { ACCOUNT_PAGE_HEADERS, type AccountPage, isAccountPagePath } from './account/page.ts'
import { createAddressRateLimit, OPEN_LIMIT } from './address-rate-limit.ts'
import { createDocumentEndpoint, isDocumentPath } from './document-endpoint.ts'
import type { SharedLimits } from './limits.ts'
import type { ListenerMeter } from './metrics.ts'
import { heldBytesRefusal, mediaTypeRefusal, recordRefusals, sizeRefusal } from './refusal.ts'
import { rateLimitHeaders, refusalResponse } from './rpc/http-response.ts'
import { createRpcPosts } from './rpc/post.ts'
import type { Rpc } from './rpc/rpc.ts'

export type RpcServerDeps = BaseDeps &
  ListenerMetrics & {
    readonly meter: Pick<ListenerMeter, 'refused'>
    readonly rpc: Rpc
    readonly account: AccountEndpoints
    /** The state of the nodes, as a node's own health page reports it. */
    readonly health: () => 'ok' | 'behind' | 'unknown'
    readonly heldBytes: HeldBytes
    readonly tarpit: Pick<AuthTarpit, 'addressOf'>
    /** The customer's own page under `/account`; undefined where it is off. */
    readonly accountPage?: AccountPage | undefined
    /** The documents under `/docs`. */
    readonly documents: StaticFiles
    readonly docsUrl: DocsUrl
    /** The public address of the WebSocket server, for clients that connect to this one instead. */
    readonly wsUrl?: string | undefined
    readonly refusals?: RefusalRecorder | undefined
    readonly limits?: SharedLimits | undefined
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
    'content-type, content-encoding, x-token, x-api-key, authorization, solana-client, x-request-id, *',
  'access-control-max-age': '86400',
}

const PATHS = { '/': ['POST'], '/health': ['GET'], ...ACCOUNT_PATHS } as const

/** The RPC server: JSON-RPC on `/`, the health page, the documents, and the account endpoints of a customer. */
export function startRpcServer(options: { listen: ListenerOptions }, deps: RpcServerDeps): Promise<HttpServer> {
  const { rpc, account, log, clock, meter, docsUrl, limits, accountPage } = deps
  const paths = accountPage === undefined ? PATHS : { ...PATHS, '/account': ['GET'] as const }
  const refusePath = createPathRules(paths, { isPreflighted: true })
  const serveDocument = createDocumentEndpoint({
    files: deps.documents,
    refusePath,
    clock,
    meter,
    table: limits?.buckets.documents,
  })
  const health = createAddressRateLimit(HEALTH_LIMIT, { clock, meter, table: limits?.buckets.health })
  const open = createAddressRateLimit(OPEN_LIMIT, { clock, meter, table: limits?.buckets.open })
  const addressOf = ({ socket, rawHeaders }: IncomingMessage) =>
    deps.tarpit.addressOf({ remoteAddress: socket.remoteAddress ?? '', headers: rawHeaders })
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
      const mayServeOpen = () => open.admit({ response, remoteAddress: addressOf(request), requestId, headers: CORS })
      if (request.method === 'OPTIONS') return mayServeOpen() ? sendText(response, 204, '', PREFLIGHT) : undefined
      if (isDocumentPath(path)) {
        const remoteAddress = addressOf(request)
        return serveDocument({ request, response, path, requestId, remoteAddress, headers: CORS })
      }
      if (accountPage !== undefined && isAccountPagePath(path)) {
        const found = { files: await accountPage(), remoteAddress: addressOf(request) }
        return serveDocument({ request, response, path, requestId, ...found, headers: ACCOUNT_PAGE_HEADERS })
      }
      const refusal = refusePath(request.method, path)
      if (refusal !== undefined) {
        if (!mayServeOpen()) return
        return sendPathRefusal(response, explainUpgrade(request, refusal, deps.wsUrl), CORS)
      }
      if (path === '/health') {
        const isAdmitted = health.admit({ response, remoteAddress: addressOf(request), requestId, headers: CORS })
        return isAdmitted ? sendText(response, 200, deps.health(), HEALTH_HEADERS) : undefined
      }
      const head = {
        headers: request.rawHeaders,
        target: request.url ?? '/',
        requestId,
        connection: request.socket,
        docsUrl,
        onRefused: recordRefusals(deps.refusals, 'rpc'),
      }
      const endpoint = account.at(path)
      assert(endpoint !== undefined, 'every path has an endpoint')
      const presented = collectToken(CREDENTIAL_SOURCES.rpc, head.headers, query)
      const caller = rpc.authenticate(head, presented, clock.nowMs(), endpoint.product)
      if (!('subscription' in caller)) return send(response, await caller.response)
      const { heldBytes, refusals } = deps
      const context = { request, response, requestId, query, meter, heldBytes, docsUrl, refusals, quota: rpc.quota }
      return serveEndpoint(endpoint, caller, context)
    },
  })
}

/** A cache in front would report a health that is over. */
const HEALTH_HEADERS = { ...CORS, 'cache-control': 'no-store' }

/** Preflights, unknown paths and wrong methods. */
const HEALTH_LIMIT = { limit: 'healthPerSecond', noun: 'health requests', perSecond: 50, burst: 500 }

/** A WebSocket client that was given the RPC address. */
function explainUpgrade(request: IncomingMessage, refusal: PathRefusal, wsUrl: string | undefined): PathRefusal {
  if (request.headers.upgrade?.toLowerCase() !== 'websocket') return refusal
  const address = wsUrl === undefined ? '' : `: ${wsUrl}`
  const message = `this address serves HTTP only; WebSockets have an address of their own${address}`
  return { ...refusal, body: { ...refusal.body, message } }
}

type EndpointContext = Pick<RpcServerDeps, 'meter' | 'heldBytes' | 'docsUrl' | 'refusals'> & {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly requestId: string
  readonly query: string
  readonly quota: Rpc['quota']
}

async function serveEndpoint(
  endpoint: AccountEndpoint,
  caller: Caller,
  { request, response, requestId, query, meter, heldBytes, docsUrl, refusals, quota }: EndpointContext,
): Promise<void> {
  const subscription = caller.subscription.id
  const refusable = { requestId, docsUrl, onRefused: recordRefusals(refusals, 'rpc', subscription) }
  const remaining = quota(caller)
  if (endpoint.takesBody && !isJsonRequest(contentFieldsOf(request.rawHeaders)))
    return send(response, refusalResponse(mediaTypeRefusal(JSON_REQUIRED), refusable, { quota: remaining }))
  if (endpoint.takesBody && isEncoded(request)) {
    const refused = refusalResponse(mediaTypeRefusal(ENCODING_REFUSED), refusable, { quota: remaining })
    return send(response, { ...refused, headers: { ...refused.headers, 'accept-encoding': 'identity' } })
  }
  const bodyBytesMax = endpoint.bodyBytesMax?.(caller.limits) ?? caller.limits.requestBytes
  using held = new HeldBody(heldBytes, subscription)
  const read = endpoint.takesBody ? await readBody(request, { bodyBytesMax, mayHold: held.take }) : NO_BODY
  if (!read.ok) {
    if (read.reason === 'aborted') return
    const { exceeded } = held
    meter.refused(exceeded ?? 'requestBytes', { subscription, code: exceeded ? 'overloaded' : 'too-large' })
    const refusal = exceeded
      ? heldBytesRefusal(exceeded, heldBytes.limits[exceeded])
      : sizeRefusal('requestBytes', bodyBytesMax)
    return send(response, refusalResponse(refusal, refusable, { quota: remaining }))
  }
  const { accept } = request.headers
  const { status, body, headers } = await endpoint.respond(caller, { body: read.body, requestId, query, accept })
  const all = { ...CORS, 'cache-control': 'no-store', ...rateLimitHeaders(remaining, 0), ...headers }
  if (typeof body === 'string') return sendText(response, status, body, all)
  if (status >= 400) refusals?.record({ requestId, interface: 'rpc', subscription, status, ...refusedFields(body) })
  sendJson(response, status, body, all)
}

function refusedFields(body: object): Pick<RefusedRequest, 'error' | 'limit' | 'message'> {
  const { error, limit, message } = body as Partial<Record<'error' | 'limit' | 'message', string>>
  return { error, limit, message }
}

const NO_BODY = { ok: true, body: Buffer.alloc(0) } as const

function send(response: ServerResponse, { status, body, headers, closes }: HttpResponse): void {
  if (closes === true) response.shouldKeepAlive = false
  sendText(response, status, body, { ...headers, ...CORS })
}
