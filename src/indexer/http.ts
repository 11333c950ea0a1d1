import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '../access/authorize.ts'
import { CREDENTIAL_SOURCES, collectLogin, collectToken } from '../access/credentials.ts'
import type { Access } from '../access/service.ts'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { createUlid } from '../core/ulid.ts'
import { gunzipBytes } from '../platform/http/gzip.ts'
import { sendText } from '../platform/http/server/reply.ts'
import { requestIdOf } from '../platform/http/server/request-id.ts'
import { type HttpServer, readBody, startHttpServer } from '../platform/http/server/server.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import type { ClickHouseProxy } from './clickhouse/proxy.ts'
import { DATABASE, type QueryDone, type QueryLimits, respondFromTables } from './duckdb/run-query.ts'
import type { IndexerMetrics, QueryOutcome } from './metrics.ts'
import { QueryError } from './query/error.ts'
import type { QueryExecutor } from './query/executor.ts'
import { type QueryRequest, readQueryRequest } from './query/request.ts'
import { sendResult } from './query/response.ts'
import type { QueryResult } from './query/result.ts'

export type IndexerServerOptions = {
  readonly listen: ListenerOptions
  readonly limits: QueryLimits
  /** How long a client may take to read a result. */
  readonly readSecondsMax: number
  readonly displayName: string
}

export type IndexerServerDeps = ListenerMetrics & {
  readonly access: Access
  /** Who runs the queries: the embedded database, or the operator's ClickHouse. */
  readonly engine: { readonly executor: QueryExecutor } | { readonly proxy: ClickHouseProxy }
  /** Newest slot up to which everything is there, for the receipt of an answer that only passes through. */
  coverageSlot(): number
  readonly metrics: IndexerMetrics
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
}

/** ClickHouse takes 256 KiB of query; what is inflated counts. */
export const QUERY_BYTES_MAX = 256 * 1024
/** The official client lets go of idle sockets after 2.5 s, and believes the server's word. */
const KEEP_ALIVE_MS = 10_000

/** The query door: ClickHouse's HTTP interface, for those who hold both the database login and the token. */
export function startIndexerServer(options: IndexerServerOptions, deps: IndexerServerDeps): Promise<HttpServer> {
  const { access, engine, metrics, log, clock, random } = deps

  async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('x-request-id', requestIdOf(request, deps))
    const [path, search] = splitTarget(request.url ?? '')
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (isRead && (path === '/ping' || path === '/replicas_status' || (path === '/' && !search.includes('query=')))) {
      return sendText(response, 200, 'Ok.\n', { 'x-clickhouse-server-display-name': options.displayName })
    }
    if (path !== '/') return sendText(response, 404, 'There is no handler for this address.\n')
    if (!isRead && request.method !== 'POST')
      return sendText(response, 405, 'Use GET or POST.\n', { allow: 'GET, POST' })
    const startedMs = clock.monotonicMs()
    const seconds = (): number => (clock.monotonicMs() - startedMs) / 1000
    let queryId = createUlid(clock.nowMs(), random)
    try {
      const { caller, login } = authenticate(request)
      const asked = readQueryRequest(
        search,
        { format: header(request, 'x-clickhouse-format'), database: header(request, 'x-clickhouse-database') },
        DATABASE,
      )
      queryId = asked.queryId ?? queryId
      const query = await readQuery(request, asked.query)
      if ('proxy' in engine) {
        const known = respondFromTables(asked, query, options.limits, deps.coverageSlot())
        // Judged before it is counted: what is refused is not charged.
        const validated = known === undefined ? engine.proxy.validate(asked, query) : asked
        admit(caller)
        if (known !== undefined) {
          using result = wholeResult(known)
          return await respond(response, result, request, asked, queryId, seconds())
        }
        using left = leaving(request, response)
        const { proxy } = engine
        const forwarded = proxy.forward(
          {
            subscriptionId: caller.subscription.id,
            plan: caller.subscription.plan,
            login,
            asked: validated,
            acceptEncoding: header(request, 'accept-encoding'),
            headers: { ...common(queryId), 'x-sluice-coverage-slot': String(deps.coverageSlot()) },
          },
          response,
          left.signal,
        )
        const { isOk } = await runCharged(caller, () => forwarded)
        return metrics.query(isOk ? 'ok' : 'failed', seconds())
      }
      admit(caller)
      const { executor } = engine
      using left = leaving(request, response)
      const { query: _head, queryId: _id, holding: _held, ...given } = asked
      const job = { ...given, query, limits: options.limits }
      using result = await runCharged(caller, () => executor.run(caller.subscription.id, job, left.signal))
      await respond(response, result, request, asked, queryId, seconds())
    } catch (error) {
      if (!(error instanceof QueryError)) throw error
      metrics.query(outcomeOf(error), seconds())
      sendError(response, error, queryId)
    }
  }

  /** Either half missing or wrong gives the same answer, and the same work is done for all. */
  function authenticate(request: IncomingMessage): { caller: Caller; login: Login } {
    const { rawHeaders } = request
    const token = collectToken(CREDENTIAL_SOURCES.indexer, rawHeaders)
    const login = collectLogin(rawHeaders)
    const caller = access.authenticateIndexer(token, login, clock.nowMs())
    if (!caller.ok || 'refused' in login) throw new QueryError('AUTHENTICATION_FAILED', AUTHENTICATION_FAILED)
    return { caller, login }
  }

  function admit(caller: Caller): void {
    const admission = access.admit(caller, CALL)
    if (admission.ok) return
    if (!('limitName' in admission)) throw new QueryError('AUTHENTICATION_FAILED', AUTHENTICATION_FAILED)
    const { limitName, limitSize, retryAfterMs } = admission
    const seconds = Number.isFinite(retryAfterMs) ? Math.max(1, Math.ceil(retryAfterMs / 1000)) : 3600
    throw new QueryError(
      'QUOTA_EXPIRED',
      `Quota exceeded: ${limitName} is ${limitSize}. Try again in ${seconds} seconds.`,
      seconds,
    )
  }

  /** What was refused for lack of room, or lost with the database, is not charged. */
  async function runCharged<Outcome>(caller: Caller, run: () => Promise<Outcome>): Promise<Outcome> {
    try {
      return await run()
    } catch (error) {
      if (error instanceof QueryError && UNCHARGED.has(error.type)) access.refund(caller, CALL)
      throw error
    }
  }

  async function respond(
    response: ServerResponse,
    result: QueryResult,
    request: IncomingMessage,
    asked: QueryRequest,
    queryId: string,
    seconds: number,
  ): Promise<void> {
    metrics.query('ok', seconds)
    metrics.queryRows.inc(result.rows)
    metrics.queryBytes.inc(result.bytes)
    const mayZip = asked.settings['enable_http_compression'] === '1' && acceptsGzip(request)
    // Too slow a reader would hold its permit and its result for ever.
    using _deadline = clock.setTimer(options.readSecondsMax * 1000, () => response.destroy())
    await sendResult(response, result, { headers: common(queryId), mayZip })
  }

  function sendError(response: ServerResponse, error: QueryError, queryId: string): void {
    sendText(response, error.httpStatus, error.body, {
      ...common(queryId),
      'content-type': 'text/plain; charset=UTF-8',
      'x-clickhouse-exception-code': String(error.code),
      ...(error.type === 'AUTHENTICATION_FAILED' ? { 'www-authenticate': 'Basic realm="sluice", Bearer' } : {}),
      ...(error.retryAfterSeconds === undefined ? {} : { 'retry-after': String(error.retryAfterSeconds) }),
    })
  }

  function common(queryId: string): Record<string, string> {
    return {
      'x-clickhouse-query-id': queryId.replaceAll(/[^\x21-\x7e]/g, '?'),
      'x-clickhouse-timezone': 'UTC',
      'x-clickhouse-server-display-name': options.displayName,
    }
  }

  return startHttpServer(
    { listen: options.listen, keepAliveMs: KEEP_ALIVE_MS },
    { log, clock, onRequest, onRefused: deps.onRefused, onNotAfter: deps.onNotAfter },
  )
}

type Login = Exclude<ReturnType<typeof collectLogin>, { readonly refused: unknown }>

const CALL = { interface: 'indexer', method: 'query' } as const
const UNCHARGED: ReadonlySet<string> = new Set(['TOO_MANY_SIMULTANEOUS_QUERIES', 'SOCKET_TIMEOUT'])

const AUTHENTICATION_FAILED =
  'Authentication failed: give the database user and password, and the token of the same subscription in x-token.'

/** A result that this process made itself. */
function wholeResult({ result, ...summary }: QueryDone): QueryResult {
  return {
    ...summary,
    bytes: result.bytes,
    async *parts() {
      while (result.bytes > 0) yield result.read()
    },
    [Symbol.dispose]: () => result.discard(),
  }
}

/** The query of the address and the body, joined by a line break as ClickHouse does. */
async function readQuery(request: IncomingMessage, fromAddress: string): Promise<string> {
  const tooLarge = (): QueryError =>
    new QueryError('QUERY_IS_TOO_LARGE', `Query is too large. Maximum: ${QUERY_BYTES_MAX} bytes.`)
  const encoding = header(request, 'content-encoding')
  if (encoding !== undefined && encoding !== 'gzip' && encoding !== 'identity')
    throw new QueryError('NOT_IMPLEMENTED', 'Of content encodings only gzip is offered here.')
  if (/^multipart\//i.test(header(request, 'content-type') ?? ''))
    throw new QueryError(
      'NOT_IMPLEMENTED',
      'Parameters as multipart are not offered here: give them in the address as param_name.',
    )
  const read = await readBody(request, { bodyBytesMax: QUERY_BYTES_MAX })
  if (!read.ok)
    throw read.reason === 'too-large' ? tooLarge() : new QueryError('QUERY_WAS_CANCELLED', 'The request broke off.')
  let { body } = read
  if (encoding === 'gzip') {
    const unpacked = await gunzipBytes(body, { bodyBytesMax: QUERY_BYTES_MAX })
    if (!unpacked.ok)
      throw unpacked.reason === 'malformed' ? new QueryError('BAD_ARGUMENTS', 'The body is not gzip.') : tooLarge()
    body = unpacked.body
  }
  const query = [fromAddress, body.toString('utf8')].filter((part) => part !== '').join('\n')
  if (Buffer.byteLength(query) > QUERY_BYTES_MAX) throw tooLarge()
  return query
}

/** Aborted when the client is gone. One that closes its side takes no interest in the answer either: ClickHouse sees it so, too. */
function leaving(request: IncomingMessage, response: ServerResponse): Disposable & { readonly signal: AbortSignal } {
  const { socket } = request
  const left = new AbortController()
  const leave = (): void => {
    if (!response.writableFinished) left.abort()
  }
  socket.once('end', leave)
  response.once('close', leave)
  if (socket.readableEnded || response.destroyed) leave()
  return {
    signal: left.signal,
    [Symbol.dispose]() {
      socket.off('end', leave)
      response.off('close', leave)
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

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name]
  return Array.isArray(value) ? value[0] : value
}

function acceptsGzip(request: IncomingMessage): boolean {
  return /(^|[ ,])gzip(?! *; *q=0(\.0+)? *(,|$))/i.test(header(request, 'accept-encoding') ?? '')
}

function splitTarget(url: string): [path: string, search: string] {
  const mark = url.indexOf('?')
  return mark === -1 ? [url, ''] : [url.slice(0, mark) || '/', url.slice(mark + 1)]
}
