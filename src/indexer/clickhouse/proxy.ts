import type { ServerResponse } from 'node:http'
import { Transform, type TransformCallback } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { createHttpClient, HttpCallFailed, type HttpReply } from '../../platform/http/client/client.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { QueryLimits } from '../duckdb/run-query.ts'
import type { IndexerMetrics } from '../metrics.ts'
import { QueryError } from '../query/error.ts'
import { createQueryPermits, type QueryPermitsOptions, RETRY_SECONDS } from '../query/permits.ts'
import type { QueryRequest } from '../query/request.ts'
import type { ClickHouseAccounts } from './accounts.ts'
import { watchServer } from './alive.ts'
import { type ClickHouseAccount, ClickHouseRefusal, createClickHouseLink } from './link.ts'
import { clickHouseTarget, passedHeaders, readSummary, validateStatement } from './request.ts'

export type ClickHouseProxyOptions = ClickHouseAccount &
  QueryPermitsOptions & {
    /** What customers see. */
    readonly database: string
    readonly limits: QueryLimits
  }

export type ClickHouseProxyDeps = {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: IndexerMetrics
  /** Makes accounts on the server; without it the operator does. */
  readonly accounts?: ClickHouseAccounts | undefined
}

/** A customer's query whose credentials were found good. */
export type ProxyQuery = {
  readonly subscriptionId: string
  readonly plan: string
  readonly login: { readonly username: string; readonly password: string }
  /** As `judge` gave it. */
  readonly asked: QueryRequest
  readonly acceptEncoding: string | undefined
  /** Beside what the server says. */
  readonly headers: Readonly<Record<string, string>>
}

/** Queries on the operator's ClickHouse, passed on as streams: nothing of an answer is kept or changed. */
export type ClickHouseProxy = Disposable & {
  readonly running: number
  /** What is asked, as the server is to see it. Throws QueryError for what it is not to see; nothing of it has left then. */
  validate(asked: QueryRequest, query: string): QueryRequest
  /** Resolves when the answer has left, with what it was. Rejects with QueryError as long as nothing of it has. */
  forward(query: ProxyQuery, response: ServerResponse, left: AbortSignal): Promise<{ readonly isOk: boolean }>
  /** A question of the operator's own, as the gateway's account and only for reading. Rejects with QueryError. */
  ask(query: string, format: string): Promise<{ readonly body: Uint8Array }>
}

/** Beyond its limit the server has this long to say so itself. */
const GRACE_MS = 2_000
/** A reader has this long to take an answer; the server holds its query as long. */
const TAKE_MS = 10 * 60_000
const CONNECT_MS = 3_000
/**
 * A query may compute for minutes without a byte, so its silence says nothing; that of a ping does. One who has waited for a moment only loses nothing
 * by coming again, and is told within a second that the server is cut off. One that runs for longer is given up after several unanswered pings.
 */
const FIRST_PING = { afterMs: 100, withinMs: 600 }
const SILENT = 'it does not answer its ping'
/** Customers hold one for each query, and ending a query takes another. */
const SPARE_CONNECTIONS = 8
/** The last bytes of an answer with an exception in them leave as one piece, because clients look for it in the last piece. */
const TRAILER_BYTES = 32 * 1024
/** UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD and AUTHENTICATION_FAILED: the account is not on the server as it is here. */
const LOGIN_CODES: readonly unknown[] = ['192', '193', '194', '516']

const AWAY = 'The database does not answer. Try again shortly.'

export function createClickHouseProxy(options: ClickHouseProxyOptions, deps: ClickHouseProxyDeps): ClickHouseProxy {
  const { clock, random, log, metrics } = deps
  const { database, limits } = options
  const permits = createQueryPermits(options, deps)
  const client = createHttpClient({
    url: options.url,
    connectionsMax: options.concurrent + SPARE_CONNECTIONS,
    connectMs: CONNECT_MS,
  })
  const link = createClickHouseLink(client, options)
  // Connections of its own: a ping must not wait behind the queries it is about.
  const pings = createHttpClient({ url: options.url, connectionsMax: options.concurrent, connectMs: CONNECT_MS })

  /** A server computes on when its client leaves; it is told to stop, by an account that may say so. */
  function endAtServer(queryId: string): void {
    link.run(`KILL QUERY WHERE query_id = '${queryId}' ASYNC`).catch((error: unknown) => {
      log.warn({ err: error, queryId }, 'a query could not be ended at the server')
    })
  }

  async function send(query: ProxyQuery, queryId: string, signal: AbortSignal): Promise<HttpReply> {
    const { login, acceptEncoding } = query
    const target = clickHouseTarget(query.asked, { queryId, database, limits })
    await deps.accounts?.ensure({ ...login, plan: query.plan })
    const reply = await client.send({
      method: 'POST',
      target,
      headers: {
        authorization: `Basic ${Buffer.from(`${login.username}:${login.password}`).toString('base64')}`,
        ...(acceptEncoding === undefined ? {} : { 'accept-encoding': acceptEncoding }),
      },
      body: Buffer.from(query.asked.query),
      signal,
    })
    if (isLoginRefusal(reply)) {
      reply.body.destroy()
      // Known to the gateway and not to the server: the operator has to hear of it.
      log.warn({ subscription: query.subscriptionId }, 'the server does not take the login of a subscription')
      throw new QueryError(
        'AUTHENTICATION_FAILED',
        'The database does not take this login. Ask the operator to grant it again.',
      )
    }
    return reply
  }

  async function forward(query: ProxyQuery, response: ServerResponse, left: AbortSignal): Promise<{ isOk: boolean }> {
    using _permit = await permits.acquire(query.subscriptionId, left)
    const queryId = `${query.subscriptionId}-${uuidOf(random.bytes(16))}`
    const controller = new AbortController()
    const { signal } = controller
    let isLate = false
    let isGone = false
    const gone = (): void => {
      isGone = true
      // Nobody is there to be told to stop; the server's own limit ends the query.
      controller.abort()
    }
    using asking = watchServer(pings, clock, FIRST_PING)
    asking.signal.addEventListener('abort', gone, { once: true })
    const stop = (): void => {
      if (signal.aborted) return
      controller.abort()
      endAtServer(queryId)
    }
    const late = (): void => {
      isLate = true
      stop()
    }
    let timer = clock.setTimer(limits.secondsMax * 1000 + GRACE_MS, late)
    left.addEventListener('abort', stop, { once: true })
    try {
      if (left.aborted) throw new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.')
      const reply = await Promise.race([send(query, queryId, signal), rejectWhen(signal)])
      timer.cancel()
      timer = clock.setTimer(TAKE_MS, late)
      // From here on there is an answer to lose.
      asking[Symbol.dispose]()
      using taking = watchServer(pings, clock)
      taking.signal.addEventListener('abort', gone, { once: true })
      const tag = reply.headers['x-clickhouse-exception-tag']
      const isOk = reply.status < 300 && reply.headers['x-clickhouse-exception-code'] === undefined
      response.writeHead(reply.status, { ...passedHeaders(reply.headers), ...query.headers })
      const counted = countBytes(metrics.queryBytes)
      if (tag === undefined) await pipeline(reply.body, counted, response)
      else await pipeline(reply.body, counted, keepTail(TRAILER_BYTES), response)
      const summary = reply.headers['x-clickhouse-summary']
      metrics.queryRows.inc(readSummary(typeof summary === 'string' ? summary : undefined).resultRows)
      return { isOk }
    } catch (error) {
      if (error instanceof QueryError) throw error
      if (response.headersSent) {
        // The head has left: cutting the connection is the only way left to say that this is not all.
        response.destroy()
        return { isOk: false }
      }
      if (isLate) throw new QueryError('TIMEOUT_EXCEEDED', `Timeout exceeded: maximum: ${limits.secondsMax} seconds.`)
      if (signal.aborted && !isGone) throw new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.')
      if (!(error instanceof HttpCallFailed) && !isGone) throw error
      log.warn({ err: isGone ? new Error(SILENT) : error }, 'the database does not answer')
      throw new QueryError('SOCKET_TIMEOUT', AWAY, RETRY_SECONDS)
    } finally {
      timer.cancel()
      left.removeEventListener('abort', stop)
    }
  }

  return {
    get running() {
      return permits.held
    },
    validate: (asked, query) => validateStatement(asked, query, database),
    forward,
    async ask(query, format) {
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

/** Never resolves. An account may have to be made first, which does not hear the signal. */
function rejectWhen(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

/** Old servers tell it by the status alone. */
function isLoginRefusal({ status, headers }: HttpReply): boolean {
  const code = headers['x-clickhouse-exception-code']
  return code === undefined ? status === 401 : LOGIN_CODES.includes(code)
}

function countBytes(count: { inc(by: number): void }): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      count.inc(chunk.length)
      done(null, chunk)
    },
  })
}

/** Holds back the last bytes and gives them out as one piece. */
function keepTail(bytes: number): Transform {
  let tail: Buffer = Buffer.alloc(0)
  return new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      const all = tail.length === 0 ? chunk : Buffer.concat([tail, chunk])
      const cut = Math.max(0, all.length - bytes)
      tail = all.subarray(cut)
      done(null, cut === 0 ? undefined : all.subarray(0, cut))
    },
    flush: (done) => done(null, tail.length === 0 ? undefined : tail),
  })
}

/** Random bytes as a UUID of version 4. */
function uuidOf(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes)
  hex[6] = ((hex[6] ?? 0) & 0x0f) | 0x40
  hex[8] = ((hex[8] ?? 0) & 0x3f) | 0x80
  return hex.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
