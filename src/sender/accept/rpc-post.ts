import { isUtf8 } from 'node:buffer'
import { type DocsUrl, ERRORS, type ErrorContext } from '../../contract/errors.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { HeldBytes } from '../../platform/http/held-bytes.ts'
import {
  contentFieldsOf,
  ENCODING_REFUSED,
  isCompressed,
  isJsonRequest,
  JSON_REQUIRED,
} from '../../platform/http/request-headers.ts'
import type { HttpResponse, PostHandler, PostHead } from '../../platform/http/server/post.ts'
import { createRequestIds } from '../../platform/http/server/request-id.ts'
import { writeError } from '../../solana/json/json-rpc.ts'
import type { TransactionLimits } from '../../solana/transaction/types.ts'
import { base64CharsMax } from './decode.ts'
import { errorOf, retryAfterOf } from './refusal.ts'
import { createRpc, type RpcDeps, type RpcResponse } from './rpc.ts'

export type RpcPostsDeps = RpcDeps & {
  /** The client address, for the limits per address. */
  addressOf(head: PostHead): string
  /** Bytes of incomplete bodies, by address. */
  readonly heldBytes: HeldBytes
  readonly clock: Clock
  readonly random: Random
  readonly docsUrl?: DocsUrl | undefined
}

/** With the default limits the largest base64 transaction in a JSON-RPC body takes 5.6 KB. */
const BODY_BYTES_MIN = 8 * 1024
const NO_ROOM_RETRY_SECONDS = 2
/** JSON around a transaction. */
const ENVELOPE_BYTES = 1024

/** The limit of a request body: enough for the largest transaction. */
export function bodyBytesMaxOf(limits: TransactionLimits): number {
  return Math.max(BODY_BYTES_MIN, base64CharsMax(limits) + ENVELOPE_BYTES)
}

/** Handles JSON-RPC by POST, both on the fast path and with node:http. */
export function createRpcPosts(commonHeaders: Readonly<Record<string, string>>, deps: RpcPostsDeps): PostHandler {
  const rpc = createRpc(deps)
  const requestIdOf = createRequestIds(deps)
  const { docsUrl } = deps
  const bodyBytesMax = bodyBytesMaxOf(deps.transactionLimits)
  return {
    headers: commonHeaders,
    validate(head) {
      const requestId = requestIdOf(head.headers)
      const errors = { requestId, docsUrl }
      const address = deps.addressOf(head)
      const fault = contentFaultOf(head.headers)
      if (fault !== undefined)
        return { requestId, response: refuseOverReads(address, errors) ?? refuseMediaType(fault, errors) }
      const tooLarge = () => refuseOverReads(address, errors) ?? responseTooLarge(bodyBytesMax, errors)
      if ((head.bodyBytes ?? 0) > bodyBytesMax) return { requestId, response: tooLarge() }
      return {
        requestId,
        bodyBytesMax,
        tooLarge,
        holdBody(bytes) {
          return deps.heldBytes.acquire(address, bytes) ? undefined : responseNoRoom(deps.heldBytes, errors)
        },
        releaseBody: (bytes) => deps.heldBytes.release(address, bytes),
        onBody(body, sink) {
          // A body that is not UTF-8 is not JSON; decoded as text it would change.
          const responded = rpc(isUtf8(body) ? body.toString('utf8') : '', { address, ...errors })
          if (!(responded instanceof Promise)) return sink.respond(httpResponseOf(responded))
          responded
            .then((response) => sink.respond(httpResponseOf(response)))
            .catch((error: unknown) => sink.fail(error))
        },
      }
    },
  }

  /** For requests refused before their calls are counted: charges the read limit of the address; the refusal by that limit above it. */
  function refuseOverReads(address: string, errors: ErrorContext): HttpResponse | undefined {
    const refusal = deps.takeRead(address)
    if (refusal === undefined) return undefined
    deps.refusals.report(refusal, errors.requestId)
    const body = writeError('null', errorOf(refusal, errors))
    return httpResponseOf({ status: 429, body, retryAfterSeconds: retryAfterOf(refusal) })
  }
}

const JSON_TYPE = { 'content-type': 'application/json' }

function httpResponseOf({ status, body, retryAfterSeconds }: RpcResponse): HttpResponse {
  return { status, headers: retryAfterSeconds === undefined ? JSON_TYPE : retryHeaders(retryAfterSeconds), body }
}

function retryHeaders(seconds: number): HttpResponse['headers'] {
  return { ...JSON_TYPE, 'retry-after': String(seconds) }
}

export function responseTooLarge(bodyBytesMax: number, errors: ErrorContext): HttpResponse {
  const message = `limit reached: ${bodyBytesMax} bytes in one request body`
  return refuseRequest('too-large', message, { limit: 'bodyBytesMax', size: bodyBytesMax }, errors)
}

/** The body does not fit among those that are held. */
export function responseNoRoom({ limits }: HeldBytes, errors: ErrorContext): HttpResponse {
  const message = `limit reached: ${limits.heldBytes} bytes of request bodies that are not complete`
  const refused = refuseRequest('rate-limited', message, { limit: 'heldBytes', size: limits.heldBytes }, errors)
  return { ...refused, headers: retryHeaders(NO_ROOM_RETRY_SECONDS) }
}

function refuseMediaType(message: string, errors: ErrorContext): HttpResponse {
  const refused = refuseRequest(
    'unsupported-media-type',
    message,
    { fix: ERRORS['unsupported-media-type'].fix },
    errors,
  )
  return message === ENCODING_REFUSED ? { ...refused, headers: { ...refused.headers, ...UNCOMPRESSED } } : refused
}

/** Refuses a request as a whole, in the status too. */
function refuseRequest(
  code: 'too-large' | 'unsupported-media-type' | 'rate-limited',
  message: string,
  data: object,
  { requestId, docsUrl }: ErrorContext,
): HttpResponse {
  const { http: status, jsonRpc } = ERRORS[code]
  const error = { code: jsonRpc, message, data: { ...data, request_id: requestId, docs_url: docsUrl?.(code) } }
  return { status, headers: JSON_TYPE, body: JSON.stringify({ jsonrpc: '2.0', error, id: null }) }
}

/** The encodings that are accepted (RFC 9110 section 15.5.16). */
export const UNCOMPRESSED = { 'accept-encoding': 'identity' } as const

/** Why the body is not read: it must be JSON, without a content encoding. */
function contentFaultOf(headers: readonly string[]): string | undefined {
  const { contentType, contentEncoding, origin } = contentFieldsOf(headers)
  if (isCompressed(contentEncoding)) return ENCODING_REFUSED
  return isJsonRequest({ contentType, origin }) ? undefined : JSON_REQUIRED
}
