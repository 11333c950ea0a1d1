import type { ServerResponse } from 'node:http'
import type { Transform } from 'node:stream'
import { leavesMuchUnread } from '../../platform/http/server/reply.ts'
import { StoreGone, type StoreProcess } from '../store/process.ts'
import type { QueryResponse, ReadResponse, ResultEnd, ResultHead } from '../store/protocol.ts'
import { QueryError } from './error.ts'
import { createNativeBlockStream } from './native-blocks.ts'
import { RETRY_SECONDS } from './permits.ts'
import { createEncoder, type ResponseEncoding } from './response-encoding.ts'
import { type SendOptions, sendParts } from './send-parts.ts'

/** The result of a query. What the client has not read yet stays in the database process, or is not produced yet. */
export type QueryResult = ResultHead &
  Disposable & {
    /** Undefined as long as the query is running. */
    readonly end: ResultEnd | undefined
    /** In order; each part is fetched after the one before it was taken. Rejects with QueryError when the query fails or the rest is lost. */
    parts(): AsyncIterable<Uint8Array>
  }

type Started = Extract<QueryResponse, { readonly ok: true }>

export type ResultSource = {
  readonly store: Pick<StoreProcess, 'ask'>
  readonly permit: Disposable
  /** Watches over one request for the next part of a query that is still running. */
  watchRead?<Response>(read: Promise<Response>): Promise<Response>
}

/** Disposing of the result stops its query, and releases its permit and the memory that it still takes in the database process. */
export function readResult(id: number, { head, first, end: known }: Started, source: ResultSource): QueryResult {
  const { store, permit, watchRead = (read) => read } = source
  let end = known
  let readBytes = first.byteLength
  let isOver = end !== undefined && readBytes === end.bytes

  async function* parts(): AsyncGenerator<Uint8Array> {
    yield first
    while (!isOver) {
      const { part, end: given } = await next()
      readBytes += part.byteLength
      end ??= given
      isOver = end !== undefined && readBytes === end.bytes
      if (part.byteLength > 0) yield part
      else if (!isOver) throw lost()
    }
  }

  async function next(): Promise<Extract<ReadResponse, { readonly ok: true }>> {
    let response: ReadResponse
    try {
      response = await watchRead(store.ask({ kind: 'read', id }))
    } catch (error) {
      if (error instanceof StoreGone) throw lost()
      throw error
    }
    if (response.ok) return response
    isOver = true
    throw new QueryError(response.type, response.message, response.retryAfterSeconds)
  }

  return {
    ...head,
    get end() {
      return end
    },
    parts,
    [Symbol.dispose]() {
      if (!isOver) store.ask({ kind: 'discard', id }).catch(() => {})
      isOver = true
      permit[Symbol.dispose]()
    },
  }
}

function lost(): QueryError {
  return new QueryError(
    'SOCKET_TIMEOUT',
    'The rest of the result is lost: the database was started again.',
    RETRY_SECONDS,
  )
}

/** Reads the complete result into memory. */
export async function collectResult(result: QueryResult): Promise<Uint8Array> {
  return Buffer.concat(await Array.fromAsync(result.parts()))
}

export type ResponseOptions = {
  readonly headers: Readonly<Record<string, string>>
  /** Marks an error at the end of the body. */
  readonly exceptionTag: string
  readonly encoding?: ResponseEncoding | undefined
  /** Whether the body consists of ClickHouse's own compressed blocks, inside of the encoding if there is one. */
  readonly isNativeCompressed?: boolean | undefined
  /** Whether the header X-ClickHouse-Progress is sent, once: the head leaves after the first rows are ready. */
  readonly hasProgress?: boolean | undefined
  readonly onSent?: SendOptions['onSent']
  readonly onWait?: SendOptions['onWait']
}

/**
 * Sends a result part by part: the next part is fetched when the client has taken the one before it. Resolves when the last byte has left this
 * process or the client has disconnected; with the error when the query has failed after the head was sent.
 */
export async function sendResult(
  response: ServerResponse,
  result: QueryResult,
  { headers, exceptionTag, ...requested }: ResponseOptions,
): Promise<QueryError | undefined> {
  if (response.headersSent || response.destroyed) return undefined
  const { end } = result
  // Small results too: some clients decode by what they requested, not by the header.
  const { encoding } = requested
  const encoders = encodersOf(requested)
  if (leavesMuchUnread(response)) response.shouldKeepAlive = false
  response.writeHead(200, {
    ...headers,
    'content-type': result.contentType,
    'x-content-type-options': 'nosniff',
    'x-clickhouse-format': result.format,
    'x-clickhouse-summary': JSON.stringify(summaryOf(end)),
    'x-sluice-coverage-slot': String(result.coverageSlot),
    ...(requested.hasProgress ? { 'x-clickhouse-progress': JSON.stringify(summaryOf(end)) } : {}),
    ...(end === undefined ? { 'x-clickhouse-exception-tag': exceptionTag } : {}),
    ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
    ...(end === undefined || encoders.length > 0 ? {} : { 'content-length': end.bytes }),
  })
  if (response.req.method === 'HEAD') {
    response.end()
    return undefined
  }
  return sendParts(response, result.parts(), {
    encoders,
    exceptionTag: end === undefined ? exceptionTag : undefined,
    onSent: requested.onSent,
    onWait: requested.onWait,
  })
}

function encodersOf({ isNativeCompressed, encoding }: Omit<ResponseOptions, 'headers' | 'exceptionTag'>): Transform[] {
  return [
    ...(isNativeCompressed === true ? [createNativeBlockStream()] : []),
    ...(encoding === undefined ? [] : [createEncoder(encoding)]),
  ]
}

/** The figures of a query that is still running are not known yet; ClickHouse sends what it has by then. */
function summaryOf(end: ResultEnd = { rows: 0, bytes: 0, elapsedSeconds: 0 }): Readonly<Record<string, string>> {
  return {
    read_rows: String(end.rows),
    read_bytes: '0',
    written_rows: '0',
    written_bytes: '0',
    total_rows_to_read: '0',
    result_rows: String(end.rows),
    result_bytes: String(end.bytes),
    elapsed_ns: String(Math.round(end.elapsedSeconds * 1e9)),
  }
}
