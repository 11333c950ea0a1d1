import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '../access/callers.ts'
import { CREDENTIAL_SOURCES, collectLogin, collectToken, splitTokenInPassword } from '../access/credentials.ts'
import { createUlid } from '../core/ulid.ts'
import { HeldBody, type HeldBytes } from '../platform/http/held-bytes.ts'
import { splitTarget } from '../platform/http/request-headers.ts'
import { createCorsHeaders } from '../platform/http/server/cors.ts'
import { createPathRules, sendPathRefusal } from '../platform/http/server/path-rules.ts'
import { sendText } from '../platform/http/server/reply.ts'
import { requestIdOf } from '../platform/http/server/request-id.ts'
import { type HttpServer, startHttpServer } from '../platform/http/server/server.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import { isPrivateConnection } from '../platform/net/private-connection.ts'
import type { RefusalRecorder } from '../platform/telemetry/refusal-log.ts'
import { createAddressLimits } from './address-limits.ts'
import { DATABASES } from './catalogue/catalogue.ts'
import { EXPOSED_HEADERS, preflightHeaders } from './cors.ts'
import type { QueryOutcome } from './metrics.ts'
import { QueryError } from './query/error.ts'
import { toNativeBlock } from './query/native-blocks.ts'
import { readQueryRequest } from './query/request.ts'
import { header, QUERY_BYTES_MAX, receiveBody } from './read-query.ts'
import { DATABASE } from './schema.ts'
import {
  authenticationFailed,
  createServeQuery,
  type Login,
  PROXIED_DATABASES,
  type ServeQueryDeps,
  type ServeQueryOptions,
} from './serve-query.ts'
import { createSessions, type SessionsOptions } from './session/sessions.ts'

export type IndexerServerOptions = ServeQueryOptions & {
  readonly listen: ListenerOptions
  readonly sessions?: SessionsOptions | undefined
  /** Whether a password may have the form TOKEN:PASSWORD on a TLS or loopback connection. */
  readonly tokenInPassword?: boolean | undefined
  /** Origins of web pages that may query; none by default. */
  readonly corsOrigins?: readonly string[] | undefined
  readonly trustedProxies?: readonly string[] | undefined
}

export type IndexerServerDeps = ListenerMetrics &
  Omit<ServeQueryDeps, 'commonHeaders'> & {
    readonly heldBytes: HeldBytes
    readonly refusals?: RefusalRecorder | undefined
  }

/** The official client closes idle sockets after 2.5 s, or as the server's keep-alive header states. */
const KEEP_ALIVE_MS = 10_000
/** Clients send the parameters of a query in the URL: as much as a statement may have, and the header fields. */
const HEAD_BYTES_MAX = QUERY_BYTES_MAX + 32 * 1024
const HEAD_TOO_LARGE = new QueryError(
  'QUERY_IS_TOO_LARGE',
  `The URL is too long. Maximum: ${HEAD_BYTES_MAX} bytes with the header fields.`,
)

function isPing({ method }: IncomingMessage, path: string, query: string): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  return path === '/ping' || path === '/replicas_status' || (path === '/' && !query.includes('query='))
}

/** Serves ClickHouse's HTTP interface to clients that have both the database login and the token. */
export function startIndexerServer(options: IndexerServerOptions, deps: IndexerServerDeps): Promise<HttpServer> {
  const { access, engine, metrics, log, clock, random } = deps
  const { corsOrigins = [], trustedProxies = [] } = options
  const grantOrigin = createCorsHeaders(corsOrigins, EXPOSED_HEADERS)
  const sessions = createSessions(options.sessions ?? SESSIONS, clock)
  const addresses = createAddressLimits({ listen: options.listen, trustedProxies }, clock)
  const serveQuery = createServeQuery(options, { ...deps, commonHeaders })

  async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = requestIdOf(request, deps)
    response.setHeader('x-request-id', requestId)
    const { path, query: search } = splitTarget(request.url)
    const crossOrigin = corsOrigins.length === 0 ? {} : grantOrigin(request)
    const isPreflight = request.method === 'OPTIONS'
    const refusal = refusePath(request.method, path)
    // Set here, because they belong to every response, results and errors alike. A preflight has its own.
    if (!isPreflight) for (const [name, value] of Object.entries(crossOrigin)) response.setHeader(name, value as string)
    const isOpen = isPreflight || refusal !== undefined || isPing(request, path, search)
    const tooMany = isOpen ? addresses.refuseOpen(request) : undefined
    if (tooMany !== undefined) return sendError(response, tooMany, createUlid(clock.nowMs(), random))
    if (isPreflight) return sendText(response, 204, '', preflightHeaders(crossOrigin))
    if (refusal !== undefined) return sendPathRefusal(response, refusal)
    if (isPing(request, path, search))
      return sendText(response, 200, 'Ok.\n', {
        'cache-control': 'no-store',
        'x-clickhouse-server-display-name': options.displayName,
      })
    const startedMs = clock.monotonicMs()
    const seconds = (): number => (clock.monotonicMs() - startedMs) / 1000
    let queryId = createUlid(clock.nowMs(), random)
    let subscription: string | undefined
    let isNativeCompressed = false
    try {
      const { caller, login } = authenticate(request, search)
      subscription = caller.subscription.id
      const received = readQueryRequest(
        search,
        { format: header(request, 'x-clickhouse-format'), database: header(request, 'x-clickhouse-database') },
        'executor' in engine ? DATABASES : PROXIED_DATABASES,
      )
      queryId = received.queryId ?? queryId
      isNativeCompressed = received.isNativeCompressed
      using session = received.session && sessions.open(subscription, received.session)
      // Until the response is complete.
      using held = new HeldBody(deps.heldBytes, subscription)
      const body = await receiveBody(request, held)
      const query = {
        ...received,
        database: received.database ?? session?.database ?? DATABASE,
        settings: { ...session?.settings, ...received.settings },
      }
      await serveQuery({ request, response, caller, login, query, body, session, queryId, seconds })
    } catch (error) {
      if (!(error instanceof QueryError)) throw error
      metrics.query(outcomeOf(error), seconds())
      const { type, httpStatus, message } = error
      deps.refusals?.record({ requestId, interface: 'indexer', subscription, error: type, status: httpStatus, message })
      // Only credentials that are wrong may be guesses; the database may refuse a login that is right.
      if (subscription !== undefined) return sendError(response, error, queryId, isNativeCompressed)
      addresses.refuseLogin(request, (closes) => {
        if (closes) response.shouldKeepAlive = false
        sendError(response, error, queryId)
      })
    }
  }

  /** A missing or wrong login or token gives the same response, after the same work; it does not show which half is wrong. */
  function authenticate(request: IncomingMessage, query: string): { caller: Caller; login: Login } {
    const { rawHeaders } = request
    const presented = { token: collectToken(CREDENTIAL_SOURCES.indexer, rawHeaders), login: collectLogin(rawHeaders) }
    const isSplit = options.tokenInPassword === true && isPrivateConnection(request.socket)
    const { token, login } = isSplit ? splitTokenInPassword(presented) : presented
    const caller = access.authenticateIndexer(token, login, clock.nowMs())
    if (!caller.ok) throw authenticationFailed(caller, { headers: rawHeaders, query })
    assert('username' in login, 'a caller is authenticated by its login too')
    return { caller, login }
  }

  /** As ClickHouse does, an error is compressed where the result would have been; clients expand it without a look at the status. */
  function sendError(response: ServerResponse, error: QueryError, queryId: string, isNativeCompressed = false): void {
    const body = isNativeCompressed ? toNativeBlock(Buffer.from(error.body)) : error.body
    sendText(response, error.httpStatus, body, {
      ...commonHeaders(queryId),
      ...errorHeaders(error),
      ...(error.type === 'AUTHENTICATION_FAILED' ? { 'www-authenticate': 'Basic realm="sluice"' } : {}),
      ...(error.retryAfterSeconds === undefined ? {} : { 'retry-after': String(error.retryAfterSeconds) }),
    })
  }

  function commonHeaders(queryId: string): Record<string, string> {
    return {
      // A result is for these credentials, which a cache does not see where they are in fields of their own.
      'cache-control': 'no-store',
      'x-clickhouse-query-id': queryId.replaceAll(/[^\x21-\x7e]/g, '?'),
      'x-clickhouse-timezone': 'UTC',
      'x-clickhouse-server-display-name': options.displayName,
    }
  }

  const { httpStatus: status, body } = HEAD_TOO_LARGE
  return startHttpServer(
    {
      listen: options.listen,
      keepAliveMs: KEEP_ALIVE_MS,
      headerBytesMax: HEAD_BYTES_MAX,
      // A pause of the client is limited by the time for which its result waits.
      stallMs: options.readSecondsMax * 1000,
    },
    {
      ...{ log, clock, onRequest, onRefused: deps.onRefused, onNotAfter: deps.onNotAfter },
      headTooLarge: { status, body, headers: errorHeaders(HEAD_TOO_LARGE) },
    },
  )
}

const SESSIONS: SessionsOptions = { sessionsPerSubscription: 64, sessionsMax: 4096 }

function errorHeaders({ code }: QueryError): Record<string, string> {
  return { 'content-type': 'text/plain; charset=UTF-8', 'x-clickhouse-exception-code': String(code) }
}

const refusePath = createPathRules(
  { '/': ['GET', 'POST'], '/ping': ['GET'], '/replicas_status': ['GET'] },
  { isPreflighted: true },
)

function outcomeOf({ type }: QueryError): QueryOutcome {
  switch (type) {
    case 'TIMEOUT_EXCEEDED':
      return 'timeout'
    case 'TOO_MANY_ROWS_OR_BYTES':
    case 'TOO_MANY_BYTES':
    case 'MEMORY_LIMIT_EXCEEDED':
      return 'too-large'
    case 'TOO_MANY_SIMULTANEOUS_QUERIES':
    case 'CANNOT_SCHEDULE_TASK':
    case 'QUOTA_EXPIRED':
      return 'busy'
    case 'QUERY_WAS_CANCELLED':
      return 'cancelled'
    case 'SOCKET_TIMEOUT':
      return 'unavailable'
    case 'UNKNOWN_EXCEPTION':
      return 'failed'
    default:
      return 'refused'
  }
}
