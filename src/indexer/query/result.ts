import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { leavesMuchUnread } from '../../platform/http/server/reply.ts'
import { StoreGone, type StoreProcess } from '../duckdb/process.ts'
import type { QueryResponse, QuerySummary } from '../duckdb/protocol.ts'
import { QueryError } from './error.ts'
import { createNativeBlockStream } from './native-blocks.ts'
import { RETRY_SECONDS } from './permits.ts'
import { createEncoder, type ResponseEncoding } from './response-encoding.ts'

/** The result of a query. What the client has not read yet stays in the database process. */
export type QueryResult = QuerySummary &
  Disposable & {
    readonly bytes: number
    /** In order; each part is fetched after the one before it was taken. Rejects with QueryError when the rest is lost. */
    parts(): AsyncIterable<Uint8Array>
  }

type Done = Extract<QueryResponse, { readonly ok: true }>['done']

/** Disposing of the result releases its permit and the memory that it still takes in the database process. */
export function readResult(
  id: number,
  { first, ...summary }: Done,
  { store, permit }: { readonly store: Pick<StoreProcess, 'ask'>; readonly permit: Disposable },
): QueryResult {
  let unreadBytes = summary.bytes - first.byteLength

  async function* parts(): AsyncGenerator<Uint8Array> {
    yield first
    while (unreadBytes > 0) {
      const part = await next()
      unreadBytes -= part.byteLength
      yield part
    }
  }

  async function next(): Promise<Uint8Array> {
    try {
      const part = await store.ask({ kind: 'read', id })
      if (part.byteLength > 0) return part
    } catch (error) {
      if (!(error instanceof StoreGone)) throw error
    }
    throw new QueryError(
      'SOCKET_TIMEOUT',
      'The rest of the result is lost: the database was started again.',
      RETRY_SECONDS,
    )
  }

  return {
    ...summary,
    parts,
    [Symbol.dispose]() {
      if (unreadBytes > 0) store.ask({ kind: 'discard', id }).catch(() => {})
      unreadBytes = 0
      permit[Symbol.dispose]()
    },
  }
}

/** Reads the complete result into memory. */
export async function collectResult(result: QueryResult): Promise<Uint8Array> {
  return Buffer.concat(await Array.fromAsync(result.parts()))
}

/** Below this size compression costs more than it saves. */
const COMPRESSED_BYTES_MIN = 1024

export type ResponseOptions = {
  readonly headers: Readonly<Record<string, string>>
  readonly encoding?: ResponseEncoding | undefined
  /** Whether the body consists of ClickHouse's own compressed blocks, inside of the encoding if there is one. */
  readonly isNativeCompressed?: boolean | undefined
  /** Whether the header X-ClickHouse-Progress is sent; the result is complete, so there is one. */
  readonly hasProgress?: boolean | undefined
}

/**
 * Sends a result part by part: the next part is fetched when the client has taken the one before it. Resolves when the last byte has left this
 * process or the client has disconnected. When the rest of the result is lost the connection is closed, so that the response does not look complete.
 */
export async function sendResult(
  response: ServerResponse,
  result: QueryResult,
  { headers, ...requested }: ResponseOptions,
): Promise<void> {
  if (response.headersSent || response.destroyed) return
  const { isNativeCompressed = false } = requested
  const encoding = result.bytes >= COMPRESSED_BYTES_MIN ? requested.encoding : undefined
  const isEncoded = encoding !== undefined || isNativeCompressed
  if (leavesMuchUnread(response)) response.shouldKeepAlive = false
  response.writeHead(200, {
    ...headers,
    'content-type': result.contentType,
    'x-content-type-options': 'nosniff',
    'x-clickhouse-format': result.format,
    'x-clickhouse-summary': JSON.stringify(summaryOf(result)),
    'x-sluice-coverage-slot': String(result.coverageSlot),
    ...(requested.hasProgress ? { 'x-clickhouse-progress': JSON.stringify(summaryOf(result)) } : {}),
    ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
    ...(isEncoded ? {} : { 'content-length': result.bytes }),
  })
  const isHead = response.req.method === 'HEAD'
  const parts = Readable.from(isHead ? [] : result.parts(), { objectMode: true, highWaterMark: 1 })
  try {
    const encoders = isHead
      ? []
      : [
          ...(isNativeCompressed ? [createNativeBlockStream()] : []),
          ...(encoding === undefined ? [] : [createEncoder(encoding)]),
        ]
    await pipeline([parts, ...encoders, response])
  } catch {
    // The client disconnected or was too slow, or the rest is lost; `pipeline` has closed the connection.
    response.destroy()
  }
}

function summaryOf({ rows, bytes, elapsedSeconds }: QueryResult): Readonly<Record<string, string>> {
  return {
    read_rows: String(rows),
    read_bytes: '0',
    written_rows: '0',
    written_bytes: '0',
    total_rows_to_read: '0',
    result_rows: String(rows),
    result_bytes: String(bytes),
    elapsed_ns: String(Math.round(elapsedSeconds * 1e9)),
  }
}
