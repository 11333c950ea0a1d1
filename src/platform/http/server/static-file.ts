import { createHash } from 'node:crypto'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { acceptsGzip } from '../request-headers.ts'
import { sendText } from './reply.ts'

/** A file that is served from memory. */
export type StaticFile = {
  readonly body: string | Uint8Array
  readonly type: string
  readonly etag?: string
  /** The body gzipped, where that is smaller. */
  readonly gzip?: Uint8Array | undefined
  /** The path contains a hash of the content, so the file never changes. */
  readonly isImmutable?: boolean
  /** How long a client may use its copy without asking; 0 unless given. */
  readonly maxAgeSeconds?: number
  /** Sent with this file. */
  readonly headers?: Readonly<Record<string, string>>
}

/** The file at a path, which has no query. */
export type StaticFiles = (path: string) => StaticFile | undefined

const YEAR_SECONDS = 31_536_000

/** Sends a file, gzipped where the client accepts that, or 304 where the client has it already. */
export function sendStaticFile(
  request: IncomingMessage,
  response: ServerResponse,
  file: StaticFile,
  more: OutgoingHttpHeaders = {},
): void {
  const gzip = acceptsGzip(request.headers['accept-encoding']) ? file.gzip : undefined
  // The two encodings of a file need different etags (RFC 9110, section 8.8.3.3).
  const etag = gzip === undefined ? file.etag : file.etag?.replace(/"$/, '-gzip"')
  const headers = {
    ...more,
    'content-type': file.type,
    'cache-control': cacheControlOf(file),
    ...file.headers,
    ...(file.gzip === undefined ? {} : { vary: 'accept-encoding' }),
    ...(etag === undefined ? {} : { etag }),
  }
  if (etag !== undefined && isHeld(request.headers['if-none-match'], etag)) return sendText(response, 304, '', headers)
  if (gzip === undefined) return sendText(response, 200, file.body, headers)
  sendText(response, 200, gzip, { ...headers, 'content-encoding': 'gzip' })
}

/** A strong etag of the content. */
export function etagOf(body: string | Uint8Array): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
}

function cacheControlOf({ isImmutable, maxAgeSeconds = 0 }: StaticFile): string {
  if (isImmutable === true) return `public, max-age=${YEAR_SECONDS}, immutable`
  return maxAgeSeconds === 0 ? 'no-cache' : `public, max-age=${maxAgeSeconds}`
}

/** If-None-Match: any of a list of etags, compared weakly, or `*` (RFC 9110, section 13.1.2). */
function isHeld(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((one) => {
    const held = one.trim().replace(/^W\//, '')
    return held === '*' || held === etag
  })
}
