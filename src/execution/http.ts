import type { IncomingMessage, ServerResponse } from 'node:http'
import { ERRORS, type TokenRefusal } from '../contract/errors.ts'
import { EXECUTION_TICKET_PATH } from '../contract/execution-routes.ts'
import { versionHeaders } from '../contract/versions.ts'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { sendJson, sendText } from '../host/http-reply.ts'
import { type HttpServer, readBody, startHttpServer } from '../host/http-server.ts'
import type { ListenerOptions } from '../host/listener.ts'
import type { DoorMetrics } from '../host/listener-metrics.ts'
import type { Logger } from '../host/logger.ts'
import { type MetricsFormat, negotiateFormat } from '../host/metrics-registry.ts'
import { requestIdOf } from '../host/request-id.ts'
import { authenticate, type Gate, UNAUTHORIZED_HEADERS, unauthorizedBody } from './admit.ts'
import { answerJsonRpc, type JsonRpcDeps } from './json-rpc.ts'
import { type PageFile, sendPageFile } from './page-file.ts'
import { requestTarget } from './request-target.ts'
import { findRoute, isOpenRoute, type RouteDeps } from './routes.ts'

/** The files of the page by path; `/` is the page itself. */
export type Page = (path: string) => PageFile | undefined

export type HttpDoorDeps = Gate &
  DoorMetrics & {
    readonly log: Logger
    readonly clock: Clock
    readonly random: Random
    readonly routes: RouteDeps
    readonly rpc: JsonRpcDeps
    readonly page: Page | undefined
    readonly metricsText: (format: MetricsFormat) => Promise<{ text: string; type: string }>
    readonly onUpgrade: Parameters<typeof startHttpServer>[1]['onUpgrade']
  }

const BODY_BYTES_MAX = 1024 * 1024

/** Nothing authenticates by cookie, so any origin may read; credentials are never allowed. */
const CORS = { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'x-request-id, retry-after' }
const PREFLIGHT = {
  ...CORS,
  'access-control-allow-methods': 'GET, HEAD, POST, OPTIONS',
  'access-control-allow-headers': 'content-type, x-token, authorization, x-request-id',
  'access-control-max-age': '86400',
}
const SECURITY = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}
const NO_PAGE = 'Sluice execution service. Status: /v1/status  Stream: WebSocket on /v1/ws\n'

/** REST, JSON-RPC, Prometheus and the page, on the port of the stream. No request changes the state of the service. */
export function startHttpDoor(options: { listen: ListenerOptions }, deps: HttpDoorDeps): Promise<HttpServer> {
  return startHttpServer(options, {
    headersFor: versionHeaders,
    log: deps.log,
    clock: deps.clock,
    onRefused: deps.onRefused,
    onNotAfter: deps.onNotAfter,
    onUpgrade: deps.onUpgrade,
    async onRequest(request, response) {
      response.setHeader('x-request-id', requestIdOf(request, deps))
      for (const [name, value] of Object.entries(SECURITY)) response.setHeader(name, value)
      const { path, query } = requestTarget(request)
      if (request.method === 'OPTIONS') return sendText(response, 204, '', PREFLIGHT)
      if (path === '/' && request.method === 'POST') return answerRpc(request, response, deps)
      if (path === EXECUTION_TICKET_PATH && deps.access !== undefined) return answerTicket(request, response, deps)
      const route = findRoute(path)
      const isMetrics = path === '/metrics'
      const file = route === undefined && !isMetrics ? pageFile(path, deps.page) : undefined
      if (route === undefined && !isMetrics && file === undefined)
        return sendJson(response, 404, { error: 'not found' }, CORS)
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        const allow = path === '/' ? 'GET, HEAD, POST, OPTIONS' : 'GET, HEAD, OPTIONS'
        return sendJson(response, 405, { error: 'method not allowed' }, { ...CORS, allow })
      }
      if (file !== undefined) return sendPageFile(request, response, file)
      if (!isOpenRoute(path) && isRefused(request, response, deps)) return
      if (route !== undefined) {
        const { status, body } = route(query, deps.routes)
        return sendJson(response, status, body, { ...CORS, 'cache-control': 'no-store' })
      }
      const { text, type } = await deps.metricsText(negotiateFormat(request.headers.accept))
      sendText(response, 200, text, { ...CORS, 'content-type': type, 'cache-control': 'no-store' })
    },
  })
}

async function answerRpc(request: IncomingMessage, response: ServerResponse, deps: HttpDoorDeps): Promise<void> {
  if (isRefused(request, response, deps)) return
  const read = await readBody(request, { bodyBytesMax: BODY_BYTES_MAX })
  const headers = { ...CORS, 'cache-control': 'no-store' }
  if (read.ok) {
    const answer = answerJsonRpc(read.body, deps.rpc)
    // Notifications alone: there is nothing to say.
    if (answer === undefined) return sendText(response, 204, '', headers)
    return sendText(response, 200, answer, { ...headers, 'content-type': 'application/json' })
  }
  if (read.reason !== 'too-large') return
  const { http, jsonRpc: code, sentence } = ERRORS['too-large']
  const error = { code, message: sentence, data: { limit: 'requestBytes', size: BODY_BYTES_MAX } }
  sendJson(response, http, { jsonrpc: '2.0', error, id: null }, headers)
}

/** A browser cannot set headers on a WebSocket; it trades its token for a ticket that can stand in an address. */
function answerTicket(request: IncomingMessage, response: ServerResponse, { access, clock }: HttpDoorDeps): void {
  if (request.method !== 'POST')
    return sendJson(response, 405, { error: 'method not allowed' }, { ...CORS, allow: 'POST' })
  const caller = authenticate({ access, clock }, request)
  if (access === undefined || caller === undefined) return refuse(response, 'missing')
  if (!caller.ok) return refuse(response, caller.reason)
  const { ticket, expiresAtMs } = access.issueTicket(caller, clock.nowMs())
  const body = { ticket, expires_at: new Date(expiresAtMs).toISOString() }
  sendJson(response, 200, body, { ...CORS, 'cache-control': 'no-store' })
}

function isRefused(request: IncomingMessage, response: ServerResponse, gate: Gate): boolean {
  const caller = authenticate(gate, request)
  if (caller?.ok !== false) return false
  refuse(response, caller.reason)
  return true
}

function refuse(response: ServerResponse, reason: TokenRefusal): void {
  sendJson(response, 401, unauthorizedBody(reason), { ...CORS, ...UNAUTHORIZED_HEADERS })
}

function pageFile(path: string, page: Page | undefined): PageFile | undefined {
  const file = page?.(path)
  if (file !== undefined || path !== '/') return file
  return { body: NO_PAGE, type: 'text/plain; charset=utf-8' }
}
