import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { gzipBytes } from '../gzip.ts'
import { acceptsGzip } from '../request-headers.ts'
import { sendText } from './reply.ts'

/** A smaller body fits into a packet as it is. */
const GZIP_REPLY_BYTES_MIN = 1024

/** Whether a body of this size is sent compressed to this client. */
export function isGzipped({ req: request }: ServerResponse, bodyBytes: number): boolean {
  return bodyBytes >= GZIP_REPLY_BYTES_MIN && acceptsGzip(request.headers['accept-encoding'])
}

/** As `sendText`, compressed on the thread pool where the client accepts gzip and the body is large enough. */
export async function sendTextGzipped(
  response: ServerResponse,
  status: number,
  body: string | Uint8Array,
  headers: OutgoingHttpHeaders = {},
): Promise<void> {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const varied = withEncodingVariants(headers)
  if (!isGzipped(response, bytes.byteLength)) return sendText(response, status, bytes, varied)
  sendText(response, status, await gzipBytes(bytes), { ...varied, 'content-encoding': 'gzip' })
}

/** Adds `Vary: Accept-Encoding`, also where this response is not compressed: another client may get other bytes for the same request. */
export function withEncodingVariants(headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  const { vary } = headers
  return { ...headers, vary: vary === undefined ? 'accept-encoding' : `${String(vary)}, accept-encoding` }
}
