import type { IncomingMessage } from 'node:http'

/** What every HTTP endpoint reads from a request line and from header fields in the same way. */

/** `gzip` or its alias (RFC 9110 section 8.4.1.3), or `*`, with an optional weight (section 12.4.2). */
const CODING = /^[ \t]*(x-gzip|gzip|\*)[ \t]*(?:;[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[ \t]*)?$/i

/**
 * Whether an Accept-Encoding value allows gzip (RFC 9110 section 12.5.3): gzip is listed with a weight above zero, or it is not listed and `*` is.
 * A member that does not follow the grammar counts as absent. Without the header the sender gets the identity encoding.
 */
export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false
  let acceptsAny = false
  for (const member of acceptEncoding.split(',')) {
    const match = CODING.exec(member)
    if (match === null) continue
    const isAccepted = Number(match[2] ?? 1) > 0
    if (match[1] !== '*') return isAccepted
    acceptsAny = isAccepted
  }
  return acceptsAny
}

/** `application/json`, or the name that JSON-RPC over HTTP uses too. Parameters are ignored: RFC 8259 section 11 defines none. */
const JSON_TYPE = /^application\/json(?:-rpc)?[ \t]*(?:;|$)/i

/**
 * Whether a body is accepted as JSON by its content type, the same on every listener. The type may be missing unless the request comes from a web
 * page, which could otherwise send it without a preflight (Fetch standard, CORS-safelisted request-header).
 */
export function isJsonRequest({ contentType, origin }: Pick<ContentFields, 'contentType' | 'origin'>): boolean {
  if (contentType === 'application/json') return true
  return contentType === undefined ? origin === undefined : JSON_TYPE.test(contentType)
}

/** The header fields that decide whether a body is read, and how its response is encoded. */
export type ContentFields = {
  contentType: string | undefined
  /** In lower case. */
  contentEncoding: string | undefined
  acceptEncoding: string | undefined
  origin: string | undefined
}

/** `headers` has names and values alternating, as received. */
export function contentFieldsOf(headers: readonly string[]): ContentFields {
  const fields: ContentFields = {
    contentType: undefined,
    contentEncoding: undefined,
    acceptEncoding: undefined,
    origin: undefined,
  }
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] as string
    const value = headers[at + 1] as string
    // Length first: it rules out most headers without a comparison.
    if (name.length === 12 && name.toLowerCase() === 'content-type') fields.contentType ??= value
    else if (name.length === 6 && name.toLowerCase() === 'origin') fields.origin ??= value
    else if (name.length === 16 && name.toLowerCase() === 'content-encoding') {
      // Two encodings, in one header or in two, become a value that is not supported.
      const encoding = value.trim().toLowerCase()
      fields.contentEncoding = fields.contentEncoding === undefined ? encoding : `${fields.contentEncoding},${encoding}`
    } else if (name.length === 15 && name.toLowerCase() === 'accept-encoding') {
      fields.acceptEncoding = fields.acceptEncoding === undefined ? value : `${fields.acceptEncoding},${value}`
    }
  }
  return fields
}

/** Whether the body is compressed, where none may be. */
export function isEncoded({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return isCompressed(headers['content-encoding']?.trim().toLowerCase())
}

/** The same for the value of `contentFieldsOf`. */
export function isCompressed(contentEncoding: string | undefined): boolean {
  return contentEncoding !== undefined && contentEncoding !== '' && contentEncoding !== 'identity'
}

/** The message of a 415. */
export const ENCODING_REFUSED = 'Content-Encoding: send the body uncompressed'
export const JSON_REQUIRED = 'Content-Type: application/json is required'

/** Host and port (RFC 9112 section 3.2): a name or an IPv4 address of the characters of RFC 3986, an IPv6 address in brackets, or nothing. */
const HOST = /^(?:\[[\w:.~%!$&'()*+,;=-]+\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::\d*)?$/i

/** Whether a Host value follows the grammar. A server refuses any other with 400. */
export function isHost(value: string): boolean {
  return HOST.test(value)
}

/** Whether an Upgrade value, a list of protocols (RFC 9110 section 7.8), has WebSocket. */
export function offersWebSocket(upgrade: string | undefined): boolean {
  return upgrade?.split(',').some((protocol) => protocol.trim().toLowerCase() === 'websocket') === true
}

/** Path and query of a request target (RFC 9112 section 3.2), the query without its question mark; scheme and host of the absolute form are dropped. */
export function splitTarget(target: string | undefined): { path: string; query: string } {
  const origin = target?.startsWith('/') ? target : (target ?? '').replace(/^[a-z][a-z\d+.-]*:\/\/[^/?]*/i, '')
  const mark = origin.indexOf('?')
  return {
    path: (mark === -1 ? origin : origin.slice(0, mark)) || '/',
    query: mark === -1 ? '' : origin.slice(mark + 1),
  }
}
