import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Refused } from '../../access/callers.ts'
import { ERRORS } from '../../contract/errors.ts'
import { EXECUTION_ROUTES, EXECUTION_TICKET_PATH } from '../../contract/execution-routes.ts'
import { STREAM_PATHS } from '../../contract/stream-events.ts'
import { versionHeaders } from '../../contract/versions.ts'
import type { Clock } from '../../core/clock.ts'
import { createKeyedBuckets } from '../../core/keyed-buckets.ts'
import type { Random } from '../../core/random.ts'
import {
  contentFieldsOf,
  ENCODING_REFUSED,
  isEncoded,
  isJsonRequest,
  JSON_REQUIRED,
} from '../../platform/http/request-headers.ts'
import { isGzipped, sendTextGzipped, withEncodingVariants } from '../../platform/http/server/gzip-reply.ts'
import { createPathRules, type Paths, sendPathRefusal } from '../../platform/http/server/path-rules.ts'
import { sendJson, sendText } from '../../platform/http/server/reply.ts'
import { requestIdOf } from '../../platform/http/server/request-id.ts'
import { type HttpServer, startHttpServer } from '../../platform/http/server/server.ts'
import { type StaticFile, type StaticFiles, sendStaticFile } from '../../platform/http/server/static-file.ts'
import type { ConnectionCapsOptions } from '../../platform/net/connection-caps.ts'
import type { ListenerOptions } from '../../platform/net/listener.ts'
import type { ListenerMetrics } from '../../platform/net/listener-metrics.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { type MetricsFormat, negotiateFormat } from '../../platform/telemetry/metrics-text.ts'
import type { RefusalRecorder } from '../../platform/telemetry/refusal-log.ts'
import type { HistoryDocument } from '../history/document.ts'
import { LimitFailure, type LimitName, RpcFailure, workLimitReached } from '../rpc/failure.ts'
import { type RpcPost, retryAfter } from '../rpc/post.ts'
import type { RunWork } from '../rpc/rpc.ts'
import { authenticate, type Policy, UNAUTHORIZED_HEADERS, unauthorizedBody } from './authorize.ts'
import type { Cors } from './cors.ts'
import { findLookup, type Lookup, type LookupDeps } from './lookups.ts'
import { sendPageFile } from './page-file.ts'
import { requestTarget } from './request-target.ts'
import { findRoute, isOpenRoute, type RouteDeps, type RouteResponse, routeError } from './routes.ts'
import { ownerOf, PRICE, UNIT, unitsOfBytes, type WorkBudget, type WorkOwner } from './work-budget.ts'

export type HttpServerDeps = Policy &
  ListenerMetrics & {
    readonly log: Logger
    readonly clock: Clock
    readonly random: Random
    readonly routes: RouteDeps
    readonly lookups: LookupDeps
    readonly runWork: RunWork
    /** The body of /v1/history. */
    readonly history: () => HistoryDocument
    readonly rpcPost: (post: RpcPost) => Promise<void>
    readonly budget: WorkBudget
    readonly cors: Cors
    readonly clientAddress: (request: IncomingMessage) => string
    readonly onLimit: (limit: LimitName) => void
    /** The files of the dashboard; `/` is the page itself. */
    readonly page: StaticFiles | undefined
    /** The documents under `/docs`. */
    readonly documents: StaticFiles | undefined
    readonly isSimulated: boolean
    readonly metricsText: (format: MetricsFormat) => Promise<{ text: string; type: string }>
    readonly refusals?: RefusalRecorder | undefined
    readonly onUpgrade: Parameters<typeof startHttpServer>[1]['onUpgrade']
  }

const SECURITY = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}
/** On every response: the records of the specification have no field for it. */
const SIMULATED = { 'x-data-source': 'simulated' } as const
const JSON_HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store' }
/** Health checks of one address. */
const HEALTH = { perSecond: 50, burst: 2000 }
const NO_PAGE = 'Sluice execution service. Status: /v1/status  Stream: WebSocket on /v1/ws\n'

/** REST, JSON-RPC, Prometheus metrics and the dashboard, on the port of the stream. No request changes the state of the service. */
export function startHttpEndpoint(
  options: { listen: ListenerOptions; caps?: ConnectionCapsOptions },
  deps: HttpServerDeps,
): Promise<HttpServer> {
  const refusePath = createPathRules(pathsOf(deps), { isPreflighted: true, upgradePaths: STREAM_PATHS })
  const health = createKeyedBuckets(HEALTH, () => deps.clock.monotonicMs())
  return startHttpServer(options, {
    headersFor: deps.isSimulated ? (url) => ({ ...versionHeaders?.(url), ...SIMULATED }) : versionHeaders,
    log: deps.log,
    clock: deps.clock,
    onRefused: deps.onRefused,
    onNotAfter: deps.onNotAfter,
    onUpgrade: deps.onUpgrade,
    onRequest(request, response) {
      const requestId = requestIdOf(request, deps)
      response.setHeader('x-request-id', requestId)
      response.once('finish', () => {
        const { statusCode: status, statusMessage: message } = response
        if (status >= 400) deps.refusals?.record({ requestId, interface: 'execution', status, message })
      })
      for (const [name, value] of Object.entries(SECURITY)) response.setHeader(name, value)
      const { path, query } = requestTarget(request)
      const isTicket = path === EXECUTION_TICKET_PATH && deps.access !== undefined
      if (request.method === 'OPTIONS') {
        if (!takeOrRefuse(addressOwner(request, deps), PRICE.call, response, deps)) return
        return sendText(response, 204, '', deps.cors.preflight(request, path === '/' || isTicket))
      }
      const refusal = refusePath(request.method, path, (deps.documents?.(path) ?? pageFile(path, deps.page)) && ['GET'])
      if (refusal !== undefined) {
        if (!takeOrRefuse(addressOwner(request, deps), PRICE.call, response, deps)) return
        return sendPathRefusal(response, refusal, deps.cors.headersFor(request))
      }
      if (path === '/' && request.method === 'POST') return respondToRpc(request, response, deps)
      if (isTicket) return respondWithTicket(request, response, deps)
      if (isOpenRoute(path)) {
        const taken = health.take(addressOwner(request, deps))
        if (!taken.ok) return refuseLimit(healthLimitReached(taken.retryAfterMs), response, deps)
      }
      return respondToRead({ request, response, path, query }, deps)
    },
  })
}

type Read = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  readonly query: URLSearchParams
}

async function respondToRead({ request, response, path, query }: Read, deps: HttpServerDeps): Promise<void> {
  const headers = deps.cors.headersFor(request)
  const route = findRoute(path)
  const lookup = findLookup(path)
  const isMetrics = path === '/metrics'
  const isHistory = path === '/v1/history'
  const document = deps.documents?.(path)
  const isData = route !== undefined || lookup !== undefined || isMetrics || isHistory
  const file = !isData ? (document ?? pageFile(path, deps.page)) : undefined
  const isOpen = file !== undefined || isOpenRoute(path)
  const owner = isOpen ? addressOwner(request, deps) : authorized(request, response, deps)
  if (owner === undefined) return
  // Health checks have a rate of their own, because a supervisor must get a response when the budget of its address is used up.
  if (!isOpenRoute(path) && !takeOrRefuse(owner, isMetrics ? PRICE.scrape : PRICE.call, response, deps)) return
  if (document !== undefined) {
    deps.budget.charge(owner, document.body.length / UNIT.readyBytes)
    return sendStaticFile(request, response, document, headers)
  }
  if (file !== undefined) return sendPageFile(request, response, file)
  if (isHistory) return sendHistory(response, owner, headers, deps)
  const found =
    lookup === undefined ? route?.(query, deps.routes) : await runLookup(lookup, { response, query, owner }, deps)
  if (lookup !== undefined && found === undefined) return
  if (found !== undefined) {
    const { status, body } = found
    const text = Buffer.from(JSON.stringify(body))
    deps.budget.charge(owner, unitsOfBytes(text.length) - 1)
    return sendTextGzipped(response, status, text, { ...headers, ...JSON_HEADERS })
  }
  const { text, type } = await deps.metricsText(negotiateFormat(request.headers.accept))
  await sendTextGzipped(response, 200, text, { ...headers, 'content-type': type, 'cache-control': 'no-store' })
}

/** Made and compressed once for many requests, so a request costs as much as bytes that are ready. */
async function sendHistory(
  response: ServerResponse,
  owner: WorkOwner,
  headers: OutgoingHttpHeaders,
  { budget, history }: HttpServerDeps,
): Promise<void> {
  const { text, gzip } = history()
  budget.charge(owner, text.length / UNIT.readyBytes)
  const varied = withEncodingVariants({ ...headers, ...JSON_HEADERS })
  if (!isGzipped(response, text.length)) return sendText(response, 200, text, varied)
  sendText(response, 200, await gzip(), { ...varied, 'content-encoding': 'gzip' })
}

/** Undefined when the request was refused or its client has disconnected. */
async function runLookup(
  lookup: Lookup,
  { response, query, owner }: Pick<Read, 'response' | 'query'> & { readonly owner: WorkOwner },
  deps: HttpServerDeps,
): Promise<RouteResponse | undefined> {
  try {
    return await deps.runWork(owner, response, (meter) => lookup(query, deps.lookups, meter))
  } catch (error) {
    if (error instanceof LimitFailure) refuseLimit(error, response, deps)
    else if (error instanceof RpcFailure) return routeError(503, error.message)
    else throw error
    return undefined
  }
}

async function respondToRpc(request: IncomingMessage, response: ServerResponse, deps: HttpServerDeps): Promise<void> {
  const headers = { ...deps.cors.headersFor(request), 'cache-control': 'no-store' }
  const owner = authorized(request, response, deps)
  if (owner === undefined) return
  const isJson = isJsonRequest(contentFieldsOf(request.rawHeaders))
  if (isJson && !isEncoded(request)) return deps.rpcPost({ request, response, owner, headers })
  if (!takeOrRefuse(owner, PRICE.call, response, deps)) return
  if (!isJson) return refuseMediaType(response, JSON_REQUIRED, headers)
  refuseMediaType(response, ENCODING_REFUSED, { ...headers, 'accept-encoding': 'identity' })
}

function refuseMediaType(response: ServerResponse, message: string, headers: OutgoingHttpHeaders): void {
  const { http, jsonRpc, fix } = ERRORS['unsupported-media-type']
  const data = { fix, request_id: response.getHeader('x-request-id') }
  sendJson(response, http, { jsonrpc: '2.0', error: { code: jsonRpc, message, data }, id: null }, headers)
}

/** A browser cannot set headers on a WebSocket; it exchanges its token for a ticket that can be part of a URL. */
function respondWithTicket(request: IncomingMessage, response: ServerResponse, deps: HttpServerDeps): void {
  const { access, clock } = deps
  const headers = deps.cors.headersFor(request)
  const caller = authenticate({ access, clock }, request)
  if (access === undefined || caller === undefined)
    return refuse(request, response, { ok: false, reason: 'missing' }, deps)
  if (!caller.ok) return refuse(request, response, caller, deps)
  if (!takeOrRefuse(ownerOf('', caller.subscription.id), PRICE.call, response, deps)) return
  const { ticket, expiresAtMs } = access.issueTicket(caller, clock.nowMs())
  const body = { ticket, expires_at: new Date(expiresAtMs).toISOString() }
  sendJson(response, 200, body, { ...headers, 'cache-control': 'no-store' })
}

function addressOwner(request: IncomingMessage, deps: HttpServerDeps): WorkOwner {
  return ownerOf(deps.clientAddress(request), undefined)
}

/** The owner of the work budget, or undefined when the request was refused. */
function authorized(request: IncomingMessage, response: ServerResponse, deps: HttpServerDeps): WorkOwner | undefined {
  const caller = authenticate(deps, request)
  if (caller === undefined) return addressOwner(request, deps)
  if (caller.ok) return ownerOf('', caller.subscription.id)
  refuse(request, response, caller, deps)
  return undefined
}

/** Takes the price of a request, or responds with 429. */
function takeOrRefuse(owner: WorkOwner, units: number, response: ServerResponse, deps: HttpServerDeps): boolean {
  const taken = deps.budget.take(owner, units)
  if (taken.ok) return true
  refuseLimit(workLimitReached(deps.budget.unitsPerSecond, units, taken.retryAfterMs), response, deps)
  return false
}

function healthLimitReached(retryAfterMs: number): LimitFailure {
  const size = HEALTH.perSecond
  const reason = `${size} health requests per second of one address`
  return new LimitFailure(reason, { limit: 'healthPerSecond', size, cost: 1, retryAfterMs })
}

function refuseLimit(failure: LimitFailure, response: ServerResponse, deps: HttpServerDeps): void {
  const { limit, message, data, retryAfterMs } = failure
  deps.onLimit(limit)
  const headers = { ...deps.cors.headersFor(response.req), ...retryAfter(retryAfterMs) }
  sendJson(response, 429, { error: message, ...data, docs_url: deps.docsUrl?.('rate-limited') }, headers)
}

/** A refused token costs its address as much as a call. */
function refuse(request: IncomingMessage, response: ServerResponse, refused: Refused, deps: HttpServerDeps): void {
  if (!takeOrRefuse(addressOwner(request, deps), PRICE.call, response, deps)) return
  const headers = { ...deps.cors.headersFor(request), ...UNAUTHORIZED_HEADERS }
  sendJson(response, 401, unauthorizedBody('execution', refused, request, deps.docsUrl), headers)
}

/** The paths of the contract with their methods; the ticket endpoint exists where tokens are required. */
function pathsOf({ access }: Policy): Paths {
  const paths: Record<string, ('GET' | 'POST')[]> = {}
  for (const { method, path } of EXECUTION_ROUTES) (paths[path.replace(/:(\w+)/, '{$1}')] ??= []).push(method)
  return access === undefined ? paths : { ...paths, [EXECUTION_TICKET_PATH]: ['POST'] }
}

function pageFile(path: string, page: StaticFiles | undefined): StaticFile | undefined {
  const file = page?.(path)
  if (file !== undefined || path !== '/') return file
  return { body: NO_PAGE, type: 'text/plain; charset=utf-8' }
}
