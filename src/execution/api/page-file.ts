import type { IncomingMessage, ServerResponse } from 'node:http'
import { acceptsGzip } from '../../platform/http/request-headers.ts'
import { sendText } from '../../platform/http/server/reply.ts'

/** One file of the dashboard. */
export type PageFile = {
  readonly body: string | Uint8Array
  readonly type: string
  readonly etag?: string
  /** The body gzipped, where that is smaller. */
  readonly gzip?: Uint8Array | undefined
  /** The path contains a hash of the content, so the file never changes. */
  readonly isImmutable?: boolean
}

/** T19: the page runs only its own scripts and connects only to its own origin. */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const YEAR_SECONDS = 31_536_000

/** Sends a file, gzipped where the client accepts that, or 304 where the client has it already. */
export function sendPageFile(request: IncomingMessage, response: ServerResponse, file: PageFile): void {
  const gzip = acceptsGzip(request.headers['accept-encoding']) ? file.gzip : undefined
  // The two encodings of a file need different etags (RFC 9110, section 8.8.3.3).
  const etag = gzip === undefined ? file.etag : file.etag?.replace(/"$/, '-gzip"')
  const headers = {
    'content-type': file.type,
    'content-security-policy': PAGE_POLICY,
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': file.isImmutable === true ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache',
    ...(file.gzip === undefined ? {} : { vary: 'accept-encoding' }),
    ...(etag === undefined ? {} : { etag }),
  }
  if (etag !== undefined && request.headers['if-none-match'] === etag) return sendText(response, 304, '', headers)
  if (gzip === undefined) return sendText(response, 200, file.body, headers)
  sendText(response, 200, gzip, { ...headers, 'content-encoding': 'gzip' })
}
