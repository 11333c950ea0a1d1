import {
  type OutgoingHttpHeaders,
  type ServerResponse,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http'
import type { Duplex } from 'node:stream'
import { systemClock } from '../../process/clock.ts'

/** An unread body of up to this size is discarded; after the response to a larger one the connection is closed. */
const DISCARD_BYTES_MAX = 64 * 1024

/** Responds with JSON; to HEAD without the body. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: OutgoingHttpHeaders = {},
): void {
  sendText(response, status, JSON.stringify(body), { 'content-type': 'application/json', ...headers })
}

/** Responds with text or bytes. Does nothing when the connection is closed or a response has begun. */
export function sendText(
  response: ServerResponse,
  status: number,
  body: string | Uint8Array,
  headers: OutgoingHttpHeaders = {},
): void {
  if (response.headersSent || response.destroyed) return
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  if (leavesMuchUnread(response)) response.shouldKeepAlive = false
  // These two have no body, and the length of the one that they stand for is not known here (RFC 9110 section 8.6).
  const hasBody = status !== 204 && status !== 304
  response.writeHead(status, {
    ...(hasBody ? { 'content-type': 'text/plain; charset=utf-8', 'content-length': bytes.byteLength } : {}),
    'x-content-type-options': 'nosniff',
    ...headers,
    ...closingField(response, headers),
  })
  response.end(response.req.method === 'HEAD' ? undefined : bytes)
}

/** The runtime keeps the connection open for a `connection` field that does not say `close`, also where it is the last response. */
function closingField(response: ServerResponse, { connection }: OutgoingHttpHeaders): OutgoingHttpHeaders {
  if (connection === undefined || /\bclose\b/i.test(String(connection))) return {}
  const isLast = !response.shouldKeepAlive || response.req.httpVersion === '1.0'
  return isLast ? { connection: `close, ${String(connection)}` } : {}
}

/** Whether a response now leaves more of the request body unread than is worth discarding. */
export function leavesMuchUnread({ req: request }: ServerResponse): boolean {
  if (request.complete) return false
  return (
    request.headers['transfer-encoding'] !== undefined ||
    Number(request.headers['content-length'] ?? 0) > DISCARD_BYTES_MAX
  )
}

/** Responds on a socket without a response object (a refused upgrade, a request that did not parse), and closes it. */
export function sendRaw(socket: Duplex, status: number, body: string, headers: OutgoingHttpHeaders = {}): void {
  if (socket.destroyed || !socket.writable) {
    socket.destroy()
    return
  }
  const fields: OutgoingHttpHeaders = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    // RFC 9110 section 6.6.1: in every response of a server that has a clock.
    date: new Date(systemClock.nowMs()).toUTCString(),
    connection: 'close',
    ...headers,
  }
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n`
  for (const [name, values] of Object.entries(fields)) {
    for (const value of values === undefined ? [] : [values].flat()) {
      validateHeaderName(name)
      validateHeaderValue(name, String(value))
      head += `${name}: ${value}\r\n`
    }
  }
  socket.once('finish', () => socket.destroy())
  socket.end(`${head}\r\n${body}`)
}
