import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from '../access/call-access.ts'
import type { Caller, Refused } from '../access/callers.ts'
import type { collectLogin } from '../access/credentials.ts'
import { explainRefusal, type RefusedHead } from '../access/explain-refusal.ts'
import { createFreeRefusals } from '../access/free-refusals.ts'
import type { Charged } from '../access/quota/charge.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import { replaceConnectionFunctions } from './catalogue/connection-functions.ts'
import type { ClickHouseProxy } from './clickhouse/proxy.ts'
import { startWorkTimer } from './duckdb/work-timer.ts'
import type { IndexerMetrics } from './metrics.ts'
import { catalogueResult, NO_ROWS, resultOf } from './query/catalogue-result.ts'
import { QueryError } from './query/error.ts'
import type { QueryExecutor } from './query/executor.ts'
import type { QueryContext, QueryLimits, QueryRequest } from './query/request.ts'
import { chooseEncoding } from './query/response-encoding.ts'
import { type QueryResult, sendResult } from './query/result.ts'
import { parseStatement } from './query/statement.ts'
import { header, isPacked, QUERY_BYTES_MAX, readQuery } from './read-query.ts'
import { DATABASE } from './schema.ts'
import { readSessionStatement } from './session/session-statement.ts'
import type { OpenSession } from './session/sessions.ts'
import { readSettings } from './session/settings.ts'

export type ServeQueryOptions = {
  readonly limits: QueryLimits
  /** Time for which a result waits for its client. */
  readonly readSecondsMax: number
  readonly displayName: string
}

export type ServeQueryDeps = BaseDeps & {
  readonly access: Access
  /** Runs the queries: the embedded database, or the operator's ClickHouse. */
  readonly engine: { readonly executor: QueryExecutor } | { readonly proxy: ClickHouseProxy }
  /** Newest slot up to which the tables are complete, for the header of a response that ClickHouse makes. */
  coverageSlot(): number
  readonly metrics: IndexerMetrics
  /** Header fields of every response to a query. */
  commonHeaders(queryId: string): Record<string, string>
}

export type Login = Exclude<ReturnType<typeof collectLogin>, { readonly refused: unknown }>

/** A query request whose credentials are valid. */
export type Exchange = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly caller: Caller
  readonly login: Login
  /** With what the session sets. Without what the body contains, until that is read. */
  readonly query: QueryRequest & { readonly database: string }
  readonly body: Buffer
  readonly session: OpenSession | undefined
  readonly queryId: string
  /** Time since the request came. */
  seconds(): number
}

/** Names of the databases whose tables a statement may name without one, where the queries are forwarded. */
export const PROXIED_DATABASES: ReadonlySet<string> = new Set([DATABASE])
const CALL = { interface: 'indexer', method: 'query' } as const
/** Errors of the database for a query that it did not run. `AUTHENTICATION_FAILED`: the operator's server does not know a login that is valid here. */
const UNCHARGED: ReadonlySet<string> = new Set([
  'TOO_MANY_SIMULTANEOUS_QUERIES',
  'SOCKET_TIMEOUT',
  'AUTHENTICATION_FAILED',
])

/** Charges a query, runs it and sends the result. The function that is returned throws QueryError as long as nothing was sent. */
export function createServeQuery(
  options: ServeQueryOptions,
  deps: ServeQueryDeps,
): (exchange: Exchange) => Promise<void> {
  const { access, engine, metrics, clock, random, commonHeaders } = deps
  const startedMs = clock.monotonicMs()
  const freeRefusals = createFreeRefusals(clock)

  /** The query with what its body contains. Reading that is work, like the checks of a statement. */
  async function readBodyOf(exchange: Exchange, charged: Charged): Promise<Exchange['query']> {
    const { request, body, query } = exchange
    try {
      const sent = await readQuery(request, body, query)
      return { ...query, query: sent.query, parameters: { ...query.parameters, ...sent.parameters } }
    } catch (error) {
      // How much of a packed body was inflated before it failed is not known.
      const bytes = isPacked(request, query) ? QUERY_BYTES_MAX : 0
      if (error instanceof QueryError) refundRefused(exchange, charged, bytes)
      throw error
    }
  }

  /** Runs the query in the embedded database; the SQL policy is applied in the database process. */
  async function execute(executor: QueryExecutor, exchange: Exchange, charged: Charged): Promise<void> {
    const { caller } = exchange
    const { query, parameters, defaultFormat, settings } = exchange.query
    const isHeld = exchange.query.buffering['wait_end_of_query'] === '1'
    const context = contextOf(exchange)
    const job = { query, parameters, defaultFormat, settings, limits: options.limits, context, isHeld }
    using disconnected = watchDisconnect(exchange)
    const running = executor.run(caller.subscription.id, job, disconnected.signal)
    using result = await refunding(exchange, charged, running)
    if (result.sessionChange !== undefined) exchange.session?.apply(result.sessionChange)
    await respond(exchange, result)
  }

  /** Forwards the query to the operator's ClickHouse. */
  async function forward(proxy: ClickHouseProxy, exchange: Exchange, charged: Charged): Promise<void> {
    const { request, response, caller, login, queryId, seconds } = exchange
    const { validated, change, catalogue } = checkForwarded(proxy, exchange, charged)
    if (change !== undefined) exchange.session?.apply(change)
    using own = catalogue
    if (own !== undefined) return await respond(exchange, own)
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
    const { isOk } = await refunding(exchange, charged, forwarded)
    metrics.query(isOk ? 'ok' : 'failed', seconds())
  }

  /** Checks a statement for ClickHouse. Has the result where the gateway itself makes it. */
  function checkForwarded(proxy: ClickHouseProxy, exchange: Exchange, charged: Charged) {
    const { query } = exchange
    try {
      const parsed = parseStatement(query.query)
      const change = readSessionStatement(parsed, PROXIED_DATABASES)
      const { timezone } = readSettings([...Object.entries(query.settings), ...parsed.settings])
      const connection = { ...contextOf(exchange), timezone }
      const statement = { ...parsed, tokens: replaceConnectionFunctions(parsed.tokens, connection) }
      const catalogue =
        change === undefined
          ? catalogueResult(statement, query, options.limits, deps.coverageSlot())
          : resultOf(NO_ROWS, statement, query, options.limits, deps.coverageSlot())
      const validated = catalogue === undefined ? proxy.validate(query, statement) : query
      return { validated, change, catalogue }
    } catch (error) {
      if (error instanceof QueryError) refundRefused(exchange, charged)
      throw error
    }
  }

  function contextOf({ login, query }: Exchange): QueryContext {
    const uptimeSeconds = Math.floor((clock.monotonicMs() - startedMs) / 1000)
    return { user: login.username, database: query.database, hostName: options.displayName, uptimeSeconds }
  }

  function admit(caller: Caller): Charged {
    const admission = access.admit(caller, CALL)
    if (admission.ok) return admission
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

  /** Refunds a query that was not run: refused at a concurrency limit, by its checks or with its login, or lost with the database process. */
  async function refunding<Outcome>(exchange: Exchange, charged: Charged, outcome: Promise<Outcome>): Promise<Outcome> {
    try {
      return await outcome
    } catch (error) {
      if (!(error instanceof QueryError)) throw error
      if (UNCHARGED.has(error.type)) access.refund(exchange.caller, CALL, charged)
      else if (error.isUnrun) refundRefused(exchange, charged)
      throw error
    }
  }

  /** Refunds a statement or a body that was refused by its checks, as long as these are few. `inflatedBytes`: of the body, where there may be more than came. */
  function refundRefused({ caller, query, body }: Exchange, charged: Charged, inflatedBytes = 0): void {
    const bytes = Math.max(query.query.length, body.length, inflatedBytes)
    if (freeRefusals.take(caller.subscription.id, bytes)) access.refund(caller, CALL, charged)
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

  return async (received) => {
    const charged = admit(received.caller)
    const exchange = { ...received, query: await readBodyOf(received, charged) }
    if ('executor' in engine) await execute(engine.executor, exchange, charged)
    else await forward(engine.proxy, exchange, charged)
  }
}

export function authenticationFailed(refused: Refused, head?: RefusedHead): QueryError {
  return new QueryError(
    'AUTHENTICATION_FAILED',
    `Authentication failed. ${explainRefusal('indexer', refused, head).fix}`,
  )
}

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
