import type { ServerResponse } from 'node:http'
import { createHttpClient, HttpCallFailed, type HttpReply } from '../../platform/http/client/client.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { createLimitedLog } from '../../platform/telemetry/limited-log.ts'
import type { IndexerMetrics } from '../metrics.ts'
import { QueryError } from '../query/error.ts'
import { createQueryPermits, type QueryPermitsOptions, RETRY_SECONDS } from '../query/permits.ts'
import type { QueryLimits, QueryRequest } from '../query/request.ts'
import { sendParts } from '../query/send-parts.ts'
import type { Statement } from '../query/statement.ts'
import type { ClickHouseAccounts } from './accounts.ts'
import { type ClickHouseAccount, ClickHouseRefusal, createClickHouseLink } from './link.ts'
import { watchServer } from './liveness.ts'
import { clickHouseCall, passedHeaders, readSummary, validateRequest } from './request.ts'

export type ClickHouseProxyOptions = ClickHouseAccount &
  QueryPermitsOptions & {
    /** Database of the views that customers see. */
    readonly database: string
    readonly limits: QueryLimits
  }

export type ClickHouseProxyDeps = BaseDeps & {
  readonly metrics: IndexerMetrics
  /** Creates customers' accounts on the server; without it the operator does. */
  readonly accounts?: ClickHouseAccounts | undefined
}

/** A customer's query whose credentials are valid. */
export type ProxyQuery = {
  readonly subscriptionId: string
  readonly plan: string
  readonly login: { readonly username: string; readonly password: string }
  /** As `validate` returned it. */
  readonly request: QueryRequest
  readonly acceptEncoding: string | undefined
  /** Added to the headers of the server's response. */
  readonly headers: Readonly<Record<string, string>>
  /** Called with the bytes of the response's body as they are written. */
  onSent(bytes: number): void
}

/** Forwards queries to the operator's ClickHouse and streams the responses: they are neither stored nor changed. */
export type ClickHouseProxy = Disposable & {
  readonly running: number
  /** Applies the SQL policy. Returns the request as the server gets it; throws QueryError for a statement that must not be forwarded. */
  validate(request: QueryRequest, statement: Statement): QueryRequest
  /** Resolves when the response is sent. Rejects with QueryError as long as nothing of it was sent. */
  forward(query: ProxyQuery, response: ServerResponse, disconnected: AbortSignal): Promise<{ readonly isOk: boolean }>
  /** Runs a query of the operator, read-only and with the gateway's own account. Rejects with QueryError. */
  query(query: string, format: string): Promise<{ readonly body: Uint8Array }>
}

/** Time for the server to report its own timeout after the time limit of the query. */
const GRACE_MS = 2_000
/** Time for a client to read a response; the server keeps the query open as long. */
const READ_MS = 10 * 60_000
const CONNECT_MS = 3_000
/**
 * A query may run for minutes without a byte, so liveness is checked with pings. A query that has just started loses nothing by a retry, so one missed
 * ping within the first second fails it. A query that runs for longer fails after several missed pings.
 */
const FIRST_PING = { afterMs: 100, withinMs: 600 }
const NO_PING = 'the server does not respond to its ping'
/** Beside one connection for each query: ending a query takes another. */
const SPARE_CONNECTIONS = 8
/** The end of a response that contains an exception is sent in one chunk, because clients look for the exception in the last chunk. */
const TRAILER_BYTES = 32 * 1024
/** UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD and AUTHENTICATION_FAILED: the server's account differs from the access store's. */
const LOGIN_CODES: readonly unknown[] = ['192', '193', '194', '516']

const AWAY = 'The database does not respond. Try again shortly.'

export function createClickHouseProxy(options: ClickHouseProxyOptions, deps: ClickHouseProxyDeps): ClickHouseProxy {
  const { clock, random, log, metrics } = deps
  const { database, limits } = options
  const [killLog, loginLog, awayLog] = [createLimitedLog(clock), createLimitedLog(clock), createLimitedLog(clock)]
  const permits = createQueryPermits(options, deps)
  const client = createHttpClient({
    url: options.url,
    connectionsMax: options.concurrent + SPARE_CONNECTIONS,
    connectMs: CONNECT_MS,
  })
  const link = createClickHouseLink(client, options)
  // On separate connections: a ping must not wait behind the queries that it checks.
  const pings = createHttpClient({ url: options.url, connectionsMax: options.concurrent, connectMs: CONNECT_MS })
  /**
   * Whether the server marks an error after the first rows. One before 25.11 writes it as a last row and ends the body normally, so its results are
   * complete before their first byte. The first result too, because the version is known from a response.
   */
  let marksErrors = false

  /** The server keeps running a query after its client disconnects, so it is killed with the gateway's account. */
  function killAtServer(queryId: string): void {
    link.run(`KILL QUERY WHERE query_id = '${queryId}' ASYNC`).catch((error: unknown) => {
      killLog((left) => log.warn({ err: error, queryId, ...left }, 'a query could not be killed at the server'))
    })
  }

  async function send(query: ProxyQuery, queryId: string, signal: AbortSignal): Promise<HttpReply> {
    const account = { ...query.login, plan: query.plan }
    await deps.accounts?.ensure(account)
    const sentMs = clock.monotonicMs()
    let reply = await sendOnce(query, queryId, signal)
    // A server that was restored or replaced has lost the account. It did not run the query.
    if (isLoginRefusal(reply) && deps.accounts?.prepareRecreation(account, sentMs) === true) {
      reply.body.destroy()
      await deps.accounts.ensure(account)
      reply = await sendOnce(query, queryId, signal)
    }
    if (!isLoginRefusal(reply)) return reply
    reply.body.destroy()
    // The gateway accepted this login, so the operator has to correct the server's account.
    const { subscriptionId: subscription } = query
    loginLog(
      (left) => log.warn({ subscription, ...left }, 'the server refuses the login of a subscription'),
      subscription,
    )
    throw new QueryError(
      'AUTHENTICATION_FAILED',
      'The database refuses this login. Ask the operator to grant it again.',
    )
  }

  async function sendOnce(query: ProxyQuery, queryId: string, signal: AbortSignal): Promise<HttpReply> {
    const { login, acceptEncoding } = query
    const forced = { queryId, database, limits, isHeld: !marksErrors }
    const { target, headers, body } = clickHouseCall(query.request, forced, random)
    const reply = await client.send({
      method: 'POST',
      target,
      headers: {
        authorization: `Basic ${Buffer.from(`${login.username}:${login.password}`).toString('base64')}`,
        ...(acceptEncoding === undefined ? {} : { 'accept-encoding': acceptEncoding }),
        ...headers,
      },
      body,
      signal,
    })
    marksErrors = hasExceptionTag(reply)
    return reply
  }

  async function forward(
    query: ProxyQuery,
    response: ServerResponse,
    disconnected: AbortSignal,
  ): Promise<{ isOk: boolean }> {
    using _permit = await permits.acquire(query.subscriptionId, disconnected)
    const queryId = `${query.subscriptionId}-${uuidOf(random.bytes(16))}`
    const controller = new AbortController()
    const { signal } = controller
    let isLate = false
    let isGone = false
    const gone = (): void => {
      isGone = true
      // The server cannot be reached to kill the query; its own time limit ends it.
      controller.abort()
    }
    using waiting = watchServer(pings, clock, FIRST_PING)
    waiting.signal.addEventListener('abort', gone, { once: true })
    const stop = (): void => {
      if (signal.aborted) return
      controller.abort()
      killAtServer(queryId)
    }
    const late = (): void => {
      isLate = true
      stop()
    }
    let timer = clock.setTimer(limits.secondsMax * 1000 + GRACE_MS, late)
    disconnected.addEventListener('abort', stop, { once: true })
    try {
      if (disconnected.aborted) throw new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.')
      const reply = await Promise.race([send(query, queryId, signal), rejectWhen(signal)])
      timer.cancel()
      timer = clock.setTimer(READ_MS, late)
      // From here on a failure loses a response, so several pings may be missed.
      waiting[Symbol.dispose]()
      using reading = watchServer(pings, clock)
      reading.signal.addEventListener('abort', gone, { once: true })
      const isOk = reply.status < 300 && reply.headers['x-clickhouse-exception-code'] === undefined
      response.writeHead(reply.status, { ...passedHeaders(reply.headers), ...query.headers })
      signal.addEventListener('abort', () => response.destroy(), { once: true })
      const failure = await sendParts(response, partsOf(reply), {
        encoders: [],
        exceptionTag: undefined,
        onSent(bytes) {
          metrics.queryBytes.inc(bytes)
          // The text of an error is no result.
          if (isOk) query.onSent(bytes)
        },
      })
      if (failure !== undefined || !response.writableFinished) return { isOk: false }
      const summary = reply.headers['x-clickhouse-summary']
      metrics.queryRows.inc(readSummary(typeof summary === 'string' ? summary : undefined).resultRows)
      return { isOk }
    } catch (error) {
      if (error instanceof QueryError) throw error
      if (response.headersSent) {
        // The headers are sent: closing the connection is the only way to show that the response is incomplete.
        response.destroy()
        return { isOk: false }
      }
      if (isLate) throw new QueryError('TIMEOUT_EXCEEDED', `Timeout exceeded: maximum: ${limits.secondsMax} seconds.`)
      if (signal.aborted && !isGone) throw new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.')
      if (!(error instanceof HttpCallFailed) && !isGone) throw error
      const err = isGone ? new Error(NO_PING) : error
      awayLog((left) => log.warn({ err, ...left }, 'the database does not respond'))
      throw new QueryError('SOCKET_TIMEOUT', AWAY, RETRY_SECONDS)
    } finally {
      timer.cancel()
      disconnected.removeEventListener('abort', stop)
    }
  }

  return {
    get running() {
      return permits.held
    },
    validate: (request, statement) => validateRequest(request, statement, database),
    forward,
    async query(query, format) {
      const settings = { readonly: '1', database, default_format: format }
      try {
        return { body: Buffer.from(await link.run(query, settings)) }
      } catch (error) {
        if (error instanceof ClickHouseRefusal) throw new QueryError('UNKNOWN_EXCEPTION', error.message)
        if (error instanceof HttpCallFailed) throw new QueryError('SOCKET_TIMEOUT', AWAY, RETRY_SECONDS)
        throw error
      }
    },
    [Symbol.dispose]() {
      client[Symbol.dispose]()
      pings[Symbol.dispose]()
    },
  }
}

/** Never resolves. Creating an account before the query does not react to the signal, so the caller races against this. */
function rejectWhen(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

/** Old servers report it by the status alone. */
function isLoginRefusal({ status, headers }: HttpReply): boolean {
  const code = headers['x-clickhouse-exception-code']
  return code === undefined ? status === 401 : LOGIN_CODES.includes(code)
}

/** Servers since 25.11 have it in every response. */
function hasExceptionTag({ headers }: HttpReply): boolean {
  return headers['x-clickhouse-exception-tag'] !== undefined
}

/**
 * The body of a response in parts. Where an exception may end it, its last bytes are one part. A current server closes the connection after an exception,
 * without the end of the body: then this throws QueryError after the last part.
 */
async function* partsOf(reply: HttpReply): AsyncGenerator<Uint8Array> {
  const tailMax = hasExceptionTag(reply) ? TRAILER_BYTES : 0
  let tail: Buffer = Buffer.alloc(0)
  let isCutOff = false
  try {
    for await (const chunk of reply.body as AsyncIterable<Buffer>) {
      const all = tail.length === 0 ? chunk : Buffer.concat([tail, chunk])
      const cut = Math.max(0, all.length - tailMax)
      tail = all.subarray(cut)
      if (cut > 0) yield all.subarray(0, cut)
    }
  } catch {
    isCutOff = true
  }
  if (tail.length > 0) yield tail
  if (isCutOff) throw new QueryError('UNKNOWN_EXCEPTION', 'The response of the server has no end.')
}

/** Random bytes as a UUID of version 4. */
function uuidOf(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes)
  hex[6] = ((hex[6] ?? 0) & 0x0f) | 0x40
  hex[8] = ((hex[8] ?? 0) & 0x3f) | 0x80
  return hex.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
