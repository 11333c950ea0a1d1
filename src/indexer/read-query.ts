import type { IncomingMessage } from 'node:http'
import { gunzipBytes } from '../platform/http/gzip.ts'
import type { HeldBody } from '../platform/http/held-bytes.ts'
import { readBody } from '../platform/http/server/read-body.ts'
import { type MultipartQuery, readMultipart } from './multipart.ts'
import { QueryError } from './query/error.ts'
import { expandNativeBlocks } from './query/native-blocks.ts'
import type { QueryRequest } from './query/request.ts'

/** As ClickHouse's max_query_size; counted after decompression. */
export const QUERY_BYTES_MAX = 256 * 1024

const RETRY_SECONDS = 2
const NOT_BLOCKS = 'The body does not consist of compressed blocks of ClickHouse, as decompress=1 states.'

/** The bytes of the body as they come, which `held` counts. Throws QueryError. */
export async function receiveBody(request: IncomingMessage, held: HeldBody): Promise<Buffer> {
  const read = await readBody(request, { bodyBytesMax: QUERY_BYTES_MAX, mayHold: held.take })
  if (read.ok) return read.body
  if (read.reason === 'no-room') throw noRoom(held)
  throw read.reason === 'too-large' ? tooLarge() : new QueryError('QUERY_WAS_CANCELLED', 'The request broke off.')
}

/** The query of the URL and the body, joined by a line break as ClickHouse does, and the parameters of a multipart body. Throws QueryError. */
export async function readQuery(
  request: IncomingMessage,
  received: Buffer,
  { query: fromUrl, isBodyNativeCompressed }: Pick<QueryRequest, 'query' | 'isBodyNativeCompressed'>,
): Promise<MultipartQuery> {
  let body = await unpack(received, header(request, 'content-encoding'))
  if (isBodyNativeCompressed) {
    const expanded = await expandNativeBlocks(body, QUERY_BYTES_MAX)
    if (!expanded.ok) throw expanded.reason === 'malformed' ? new QueryError('BAD_ARGUMENTS', NOT_BLOCKS) : tooLarge()
    body = expanded.content
  }
  const contentType = header(request, 'content-type') ?? ''
  const sent = /^multipart\//i.test(contentType)
    ? readMultipart(body, contentType)
    : { query: body.toString('utf8'), parameters: {} }
  const query = [fromUrl, sent.query].filter((part) => part !== '').join('\n')
  if (Buffer.byteLength(query) > QUERY_BYTES_MAX) throw tooLarge()
  return { query, parameters: sent.parameters }
}

/** Whether the body may be larger once it is read. */
export function isPacked(
  request: IncomingMessage,
  { isBodyNativeCompressed }: Pick<QueryRequest, 'isBodyNativeCompressed'>,
): boolean {
  return isBodyNativeCompressed || header(request, 'content-encoding') !== undefined
}

async function unpack(body: Buffer, contentEncoding = 'identity'): Promise<Buffer> {
  // Names of codings have no case (RFC 9110 section 8.4.1).
  const encoding = contentEncoding.trim().toLowerCase()
  if (encoding === 'identity') return body
  if (encoding !== 'gzip') throw new QueryError('NOT_IMPLEMENTED', 'The only supported content encoding is gzip.')
  const unpacked = await gunzipBytes(body, { bodyBytesMax: QUERY_BYTES_MAX })
  if (unpacked.ok) return unpacked.body
  throw unpacked.reason === 'malformed' ? new QueryError('BAD_ARGUMENTS', 'The body is not gzip.') : tooLarge()
}

function noRoom({ exceeded }: HeldBody): QueryError {
  const whose =
    exceeded === 'heldBytes' ? 'all subscriptions (heldBytes)' : 'this subscription (heldBytesPerSubscription)'
  const message = `Requests of ${whose} hold too many bytes. Send fewer large ones at a time; try again in ${RETRY_SECONDS} seconds.`
  return new QueryError('TOO_MANY_SIMULTANEOUS_QUERIES', message, RETRY_SECONDS)
}

function tooLarge(): QueryError {
  return new QueryError('QUERY_IS_TOO_LARGE', `Query is too large. Maximum: ${QUERY_BYTES_MAX} bytes.`)
}

/** The first value of a header field. */
export function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name]
  return Array.isArray(value) ? value[0] : value
}
