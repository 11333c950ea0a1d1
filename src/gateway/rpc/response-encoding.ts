import { gzipBytes, gzipRest } from '../../platform/http/gzip.ts'
import { acceptsGzip } from '../../platform/http/request-headers.ts'
import type { HttpResponse } from '../../platform/http/server/post.ts'

/** Below about three packets a client gains nothing, and compression on another thread costs more. */
export const GZIP_BODY_BYTES_MIN = 4096

/** Compresses the response where the client accepts gzip and the response is large enough. */
export function encodeResponse(
  response: HttpResponse,
  acceptEncoding: string | undefined,
): HttpResponse | Promise<HttpResponse> {
  const { body, rest } = response
  const isLarge = rest !== undefined || body.length >= GZIP_BODY_BYTES_MIN
  if (!isLarge) return response
  // Also where this response is not compressed: another client may get other bytes for the same request.
  const headers = { ...response.headers, vary: 'accept-encoding' }
  const identity = { ...response, headers, lines: undefined }
  if (acceptEncoding === undefined || !acceptsGzip(acceptEncoding)) return identity
  const gzip = { ...identity, headers: { ...headers, 'content-encoding': 'gzip' } }
  if (rest === undefined) return gzipBytes(body).then((bytes) => ({ ...gzip, body: bytes }))
  return { ...gzip, body: '', rest: gzipRest(typeof body === 'string' ? Buffer.from(body) : body, rest) }
}
