import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzipStream } from '../../platform/http/gzip.ts'
import { leavesMuchUnread } from '../../platform/http/server/reply.ts'
import type { QueryResult } from './result.ts'

/** Below this compression costs more than it saves. */
const GZIP_BYTES_MIN = 1024

/**
 * Sends a result part by part: the next one is asked for when the client has taken the one before. Resolves when the last byte has left this process or
 * the client is gone. A result whose rest is lost ends with the connection: it must not look complete.
 */
export async function sendResult(
  response: ServerResponse,
  result: QueryResult,
  { headers, mayZip }: { readonly headers: Readonly<Record<string, string>>; readonly mayZip: boolean },
): Promise<void> {
  if (response.headersSent || response.destroyed) return
  const isZipped = mayZip && result.bytes >= GZIP_BYTES_MIN
  if (leavesMuchUnread(response)) response.shouldKeepAlive = false
  response.writeHead(200, {
    ...headers,
    'content-type': result.contentType,
    'x-content-type-options': 'nosniff',
    'x-clickhouse-format': result.format,
    'x-clickhouse-summary': JSON.stringify(summaryOf(result)),
    'x-sluice-coverage-slot': String(result.coverageSlot),
    ...(isZipped ? { 'content-encoding': 'gzip' } : { 'content-length': result.bytes }),
  })
  const isHead = response.req.method === 'HEAD'
  const parts = Readable.from(isHead ? [] : result.parts(), { objectMode: true, highWaterMark: 1 })
  try {
    if (isZipped && !isHead) await pipeline(parts, createGzipStream(), response)
    else await pipeline(parts, response)
  } catch {
    // Gone, too slow, or the rest is lost; `pipeline` has closed the connection.
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
