import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller, Refused } from '../access/authorize.ts'
import { CREDENTIAL_SOURCES, collectLogin, collectToken, splitTokenInPassword } from '../access/credentials.ts'
import { explainRefusal, type RefusedHead } from '../access/explain-refusal.ts'
import type { Access } from '../access/service.ts'
import { createUlid } from '../core/ulid.ts'
import { splitTarget } from '../platform/http/request-headers.ts'
import { createOriginGrants } from '../platform/http/server/origin-grants.ts'
import { createPathRules, sendPathRefusal } from '../platform/http/server/path-rules.ts'
import { sendText } from '../platform/http/server/reply.ts'
import { requestIdOf } from '../platform/http/server/request-id.ts'
import { type HttpServer, startHttpServer } from '../platform/http/server/server.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import { isPrivateConnection } from '../platform/net/private-connection.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { RefusalRecorder } from '../platform/telemetry/refusal-log.ts'
import { createAddressLimits } from './address-limits.ts'
import { DATABASES } from './catalogue/catalogue.ts'
import { replaceConnectionFunctions } from './catalogue/connection-functions.ts'
import type { ClickHouseProxy } from './clickhouse/proxy.ts'
import { EXPOSED_HEADERS, preflightHeaders } from './cross-origin.ts'
import { startWorkTimer } from './duckdb/work-timer.ts'
import type { IndexerMetrics, QueryOutcome } from './metrics.ts'
import { catalogueResult, NO_ROWS, resultOf } from './query/catalogue.ts'
import { QueryError } from './query/error.ts'
import type { QueryExecutor } from './query/executor.ts'
import { toNativeBlock } from './query/native-blocks.ts'
import { type QueryContext, type QueryLimits, type QueryRequest, readQueryRequest } from './query/request.ts'
import { chooseEncoding } from './query/response-encoding.ts'
import { type QueryResult, sendResult } from './query/result.ts'
import { parseStatement } from './query/statement.ts'
import { header, QUERY_BYTES_MAX, readQuery } from './read-query.ts'
import { DATABASE } from './schema.ts'
import { readSessionStatement } from './session/session-statement.ts'
import { createSessions, type OpenSession, type SessionsOptions } from './session/sessions.ts'
import { readSettings } from './session/settings.ts'

export type IndexerServerOptions = {
  readonly listen: ListenerOptions
  readonly limits: QueryLimits
  /** Time for which a result waits for its client. */
  readonly readSecondsMax: number
  readonly sessions?: SessionsOptions | undefined
  readonly displayName: string
  /** Whether a password may have the form TOKEN:PASSWORD on a TLS or loopback connection. */
  readonly tokenInPassword?: boolean | undefined
  /** Origins of web pages that may query; none by default. */
  readonly corsOrigins?: readonly string[] | undefined
  readonly trustedProxies?: readonly string[] | undefined
}

export type IndexerServerDeps = BaseDeps &
  ListenerMetrics & {
    readonly access: Access
    /** Runs the queries: the embedded database, or the operator's ClickHouse. */
    readonly engine: { readonly executor: QueryExecutor } | { readonly proxy: ClickHouseProxy }
    /** Newest slot up to which the tables are complete, for the header of a response that ClickHouse makes. */
    coverageSlot(): number
    readonly metrics: IndexerMetrics
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
  const grantOrigin = createOriginGrants(corsOrigins, EXPOSED_HEADERS)
  const sessions = createSessions(options.sessions ?? SESSIONS, clock)
  const serverStartedMs = clock.monotonicMs()
  const addresses = createAddressLimits({ listen: options.listen, trustedProxies }, clock)

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
      return sendText(response, 200, 'Ok.\n', { 'x-clickhouse-server-display-name': options.displayName })
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
      const query = {
        ...received,
        database: received.database ?? session?.database ?? DATABASE,
        settings: { ...session?.settings, ...received.settings },
        query: await readQuery(request, received.query),
      }
      const exchange: Exchange = { request, response, caller, login, query, session, queryId, seconds }
      await ('executor' in engine ? execute(engine.executor, exchange) : forward(engine.proxy, exchange))
    } catch (error) {
      if (!(error instanceof QueryError)) throw error
      metrics.query(outcomeOf(error), seconds())
      const { type, httpStatus, message } = error
      deps.refusals?.note({ requestId, interface: 'indexer', subscription, error: type, status: httpStatus, message })
      if (type !== 'AUTHENTICATION_FAILED') return sendError(response, error, queryId, isNativeCompressed)
      addresses.refuseLogin(request, (closes) => {
        if (closes) response.shouldKeepAlive = false
        sendError(response, error, queryId)
      })
    }
  }

  /** Runs the query in the embedded database; the SQL policy is applied in the database process. */
  async function execute(executor: QueryExecutor, exchange: Exchange): Promise<void> {
    const { caller } = exchange
    admit(caller)
    const { query, parameters, defaultFormat, settings } = exchange.query
    const isHeld = exchange.query.buffering['wait_end_of_query'] === '1'
    const context = contextOf(exchange)
    const job = { query, parameters, defaultFormat, settings, limits: options.limits, context, isHeld }
    using disconnected = watchDisconnect(exchange)
    using result = await refunding(caller, executor.run(caller.subscription.id, job, disconnected.signal))
    if (result.sessionChange !== undefined) exchange.session?.apply(result.sessionChange)
    await respond(exchange, result)
  }

  /** Forwards the query to the operator's ClickHouse. A statement is validated before it is charged: a refused one is not charged. */
  async function forward(proxy: ClickHouseProxy, exchange: Exchange): Promise<void> {
    const { request, response, caller, login, query, queryId, seconds } = exchange
    const parsed = parseStatement(query.query)
    const change = readSessionStatement(parsed, PROXIED_DATABASES)
    const { timezone } = readSettings([...Object.entries(query.settings), ...parsed.settings])
    const connection = { ...contextOf(exchange), timezone }
    const statement = { ...parsed, tokens: replaceConnectionFunctions(parsed.tokens, connection) }
    using catalogue =
      change === undefined
        ? catalogueResult(statement, query, options.limits, deps.coverageSlot())
        : resultOf(NO_ROWS, statement, query, options.limits, deps.coverageSlot())
    const validated = catalogue === undefined ? proxy.validate(query, statement) : query
    admit(caller)
    if (change !== undefined) exchange.session?.apply(change)
    if (catalogue !== undefined) return await respond(exchange, catalogue)
    using disconnected = watchDisconnect(exchange)
    const forwarded = proxy.forward(
      {
        subscriptionId: caller.subscription.id,
        plan: caller.subscription.plan,
        login,
        request: validated,
        acceptEncoding: header(request, 'accept-encoding'),
        headers: { ...commonHeaders(queryId), 'x-sluice-coverage-slot': String(deps.coverageSlot()) },
        onSent: (bytes) => access.countBytes(caller, 'indexer', bytes),
      },
      response,
      disconnected.signal,
    )
    const { isOk } = await refunding(caller, forwarded)
    metrics.query(isOk ? 'ok' : 'failed', seconds())
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

  function contextOf({ login, query }: Exchange): QueryContext {
    const uptimeSeconds = Math.floor((clock.monotonicMs() - serverStartedMs) / 1000)
    return { user: login.username, database: query.database, hostName: options.displayName, uptimeSeconds }
  }

  function admit(caller: Caller): void {
    const admission = access.admit(caller, CALL)
    if (admission.ok) return
    if (!('limitName' in admission)) {
      assert(admission.reason !== 'not-assigned', 'a query needs no node')
      throw authenticationFailed(admission)
    }
    const { limitName, limitSize, retryAfterMs } = admission
    const seconds = Number.isFinite(retryAfterMs) ? Math.max(1, Math.ceil(retryAfterMs / 1000)) : 3600
    throw new QueryError(
      'QUOTA_EXPIRED',
      `Quota exceeded: ${limitName} is ${limitSize}. Try again in ${seconds} seconds.`,
      seconds,
    )
  }

  /** Refunds a query that was refused at a concurrency limit or lost with the database process. */
  async function refunding<Outcome>(caller: Caller, outcome: Promise<Outcome>): Promise<Outcome> {
    try {
      return await outcome
    } catch (error) {
      if (error instanceof QueryError && UNCHARGED.has(error.type)) access.refund(caller, CALL)
      throw error
    }
  }

  async function respond(exchange: Exchange, result: QueryResult): Promise<void> {
    const { request, response, caller, query, queryId, seconds } = exchange
    const { isCompressed, hasProgress } = readSettings(Object.entries(query.settings))
    const encoding = isCompressed ? chooseEncoding(header(request, 'accept-encoding')) : undefined
    // A client that does not read would hold its permit and its result for ever. The time that the query takes does not count.
    using deadline = startWorkTimer(clock, options.readSecondsMax * 1000, () => response.destroy())
    deadline.pause(true)
    const onWait = (isWaiting: boolean): void => deadline.pause(!isWaiting)
    const wasComplete = result.end !== undefined
    if (wasComplete) metrics.query('ok', seconds())
    const exceptionTag = Buffer.from(random.bytes(8)).toString('hex')
    const { isNativeCompressed } = query
    const onSent = (bytes: number): void => access.countBytes(caller, 'indexer', bytes)
    const how = { encoding, isNativeCompressed, hasProgress, exceptionTag, onSent, onWait }
    const form = { headers: commonHeaders(queryId), ...how }
    const failure = await sendResult(response, result, form)
    metrics.queryRows.inc(result.end?.rows ?? 0)
    metrics.queryBytes.inc(result.end?.bytes ?? 0)
    if (failure !== undefined) throw failure
    if (!wasComplete) metrics.query('ok', seconds())
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

type Login = Exclude<ReturnType<typeof collectLogin>, { readonly refused: unknown }>

/** A query request whose credentials are valid. */
type Exchange = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly caller: Caller
  readonly login: Login
  /** With what the session sets. */
  readonly query: QueryRequest & { readonly database: string }
  readonly session: OpenSession | undefined
  readonly queryId: string
  /** Time since the request came. */
  seconds(): number
}

const SESSIONS: SessionsOptions = { sessionsPerSubscription: 64, sessionsMax: 4096 }
/** The tables of `system` are those of the embedded engine. */
const PROXIED_DATABASES: ReadonlySet<string> = new Set([DATABASE])
const CALL = { interface: 'indexer', method: 'query' } as const
const UNCHARGED: ReadonlySet<string> = new Set(['TOO_MANY_SIMULTANEOUS_QUERIES', 'SOCKET_TIMEOUT'])

function errorHeaders({ code }: QueryError): Record<string, string> {
  return { 'content-type': 'text/plain; charset=UTF-8', 'x-clickhouse-exception-code': String(code) }
}

function authenticationFailed(refused: Refused, head?: RefusedHead): QueryError {
  return new QueryError(
    'AUTHENTICATION_FAILED',
    `Authentication failed. ${explainRefusal('indexer', refused, head).fix}`,
  )
}

const refusePath = createPathRules(
  { '/': ['GET', 'POST'], '/ping': ['GET'], '/replicas_status': ['GET'] },
  { isPreflighted: true },
)

/** Aborts the signal when the client disconnects. A client that closes its side of the connection counts as disconnected, as in ClickHouse. */
function watchDisconnect({ request, response }: Exchange): Disposable & { readonly signal: AbortSignal } {
  const { socket } = request
  const disconnected = new AbortController()
  const onDisconnect = (): void => {
    if (!response.writableFinished) disconnected.abort()
  }
  socket.once('end', onDisconnect)
  response.once('close', onDisconnect)
  if (socket.readableEnded || response.destroyed) onDisconnect()
  return {
    signal: disconnected.signal,
    [Symbol.dispose]() {
      socket.off('end', onDisconnect)
      response.off('close', onDisconnect)
    },
  }
}

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
