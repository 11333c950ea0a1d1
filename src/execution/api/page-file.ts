import type { IncomingMessage, ServerResponse } from 'node:http'
import { sendText } from '../../platform/http/server/reply.ts'

/** One file of the page. */
export type PageFile = {
  readonly body: string | Uint8Array
  readonly type: string
  readonly etag?: string
  /** The same, gzipped, where that is smaller. */
  readonly gzip?: Uint8Array | undefined
  /** The path carries a hash of the content: what was once fetched never changes. */
  readonly isImmutable?: boolean
}

/** T19: the page runs its own script and talks to its own origin, nothing else. */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const YEAR_SECONDS = 31_536_000

/** Sends a file of the page, gzipped to whom takes that, or nothing to who has it already. */
export function sendPageFile(request: IncomingMessage, response: ServerResponse, file: PageFile): void {
  const gzip = acceptsGzip(request.headers['accept-encoding']) ? file.gzip : undefined
  // Two encodings of a file are two things to a cache (RFC 9110, section 8.8.3.3).
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

/** `gzip` by name and not refused by `q=0`; whoever says only `*` gets the plain file, which everybody reads. */
function acceptsGzip(accepted: string | string[] | undefined): boolean {
  return String(accepted ?? '')
    .split(',')
    .some((one) => /^\s*gzip\s*(;\s*q\s*=\s*(0\.0*[1-9]\d*|1(\.0*)?)\s*)?$/i.test(one))
}
