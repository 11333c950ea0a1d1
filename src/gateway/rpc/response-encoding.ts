import { gzipBytes, gzipRest } from '../../platform/http/gzip.ts'
import type { HttpResponse } from '../../platform/http/server/post.ts'

/** Below about three packets there is nothing to gain that a client would notice, and the thread that packs costs more. */
export const GZIP_BODY_BYTES_MIN = 4096

/** The answer in the encoding the client asked for: packed when it may be and is large enough, else as it is. */
export function encodeResponse(
  response: HttpResponse,
  acceptEncoding: string | undefined,
): HttpResponse | Promise<HttpResponse> {
  const { body, rest } = response
  const isLarge = rest !== undefined || body.length >= GZIP_BODY_BYTES_MIN
  if (!isLarge) return response
  // Whether or not this one is packed: a cache between must know that another client may get other bytes.
  const headers = { ...response.headers, vary: 'accept-encoding' }
  const same = { ...response, headers, lines: undefined }
  if (acceptEncoding === undefined || !acceptsGzip(acceptEncoding)) return same
  const packed = { ...same, headers: { ...headers, 'content-encoding': 'gzip' } }
  if (rest === undefined) return gzipBytes(body).then((bytes) => ({ ...packed, body: bytes }))
  return { ...packed, body: '', rest: gzipRest(typeof body === 'string' ? Buffer.from(body) : body, rest) }
}

/** RFC 9110 section 12.5.3: named with a weight that is not zero, or covered by `*` and not named. */
export function acceptsGzip(acceptEncoding: string): boolean {
  let any = false
  for (const part of acceptEncoding.split(',')) {
    const [name = '', ...parameters] = part.split(';').map((word) => word.trim().toLowerCase())
    const isWanted = !parameters.some((parameter) => /^q\s*=\s*0(?:\.0{0,3})?$/.test(parameter))
    if (name === 'gzip' || name === 'x-gzip') return isWanted
    if (name === '*') any = isWanted
  }
  return any
}
