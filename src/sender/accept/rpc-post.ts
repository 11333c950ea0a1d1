import { isUtf8 } from 'node:buffer'
import { docsUrl, ERRORS } from '../../contract/errors.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { isJsonContentType } from '../../platform/http/request-headers.ts'
import type { HttpResponse, PostHandler, PostHead } from '../../platform/http/server/post.ts'
import { createRequestIds } from '../../platform/http/server/request-id.ts'
import { createRpc, type RpcDeps, type RpcResponse } from './rpc.ts'

export type RpcPostsDeps = RpcDeps & {
  /** The client address, for the limits per address. */
  addressOf(head: PostHead): string
  readonly clock: Clock
  readonly random: Random
}

/** The largest base64 transaction in a JSON-RPC body takes 5.6 KB. */
export const BODY_BYTES_MAX = 8 * 1024

/** Handles JSON-RPC by POST, both on the fast path and with node:http. */
export function createRpcPosts(commonHeaders: Readonly<Record<string, string>>, deps: RpcPostsDeps): PostHandler {
  const rpc = createRpc(deps)
  const requestIdOf = createRequestIds(deps)
  return {
    headers: commonHeaders,
    validate(head) {
      const requestId = requestIdOf(head.headers)
      if (!isPlainJson(head.headers)) return { requestId, response: NOT_JSON }
      const tooLarge = () => responseTooLarge(requestId)
      if ((head.bodyBytes ?? 0) > BODY_BYTES_MAX) return { requestId, response: tooLarge() }
      const address = deps.addressOf(head)
      return {
        requestId,
        bodyBytesMax: BODY_BYTES_MAX,
        tooLarge,
        onBody(body, responder) {
          // A body that is not UTF-8 is not JSON; decoded as text it would change.
          const responded = rpc(isUtf8(body) ? body.toString('utf8') : '', { address, requestId })
          if (!(responded instanceof Promise)) return responder.respond(httpResponseOf(responded))
          responded
            .then((response) => responder.respond(httpResponseOf(response)))
            .catch((error: unknown) => responder.fail(error))
        },
      }
    },
  }
}

const JSON_TYPE = { 'content-type': 'application/json' }
const NOT_JSON: HttpResponse = {
  status: 415,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: 'Content-Type: application/json is required',
}

function httpResponseOf({ status, body, retryAfterSeconds }: RpcResponse): HttpResponse {
  return { status, headers: retryAfterSeconds === undefined ? JSON_TYPE : retryHeaders(retryAfterSeconds), body }
}

function retryHeaders(seconds: number): HttpResponse['headers'] {
  return { ...JSON_TYPE, 'retry-after': String(seconds) }
}

export function responseTooLarge(requestId: string): HttpResponse {
  const error = {
    code: ERRORS['too-large'].jsonRpc,
    message: `limit reached: ${BODY_BYTES_MAX} bytes in one request body`,
    data: { limit: 'bodyBytesMax', size: BODY_BYTES_MAX, request_id: requestId, docs_url: docsUrl('too-large') },
  }
  return { status: 413, headers: JSON_TYPE, body: JSON.stringify({ jsonrpc: '2.0', error, id: null }) }
}

/** JSON without a content encoding. */
function isPlainJson(headers: readonly string[]): boolean {
  let type: string | undefined
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] as string
    // Compares lengths first, which rules out most headers.
    if (name.length === 12 && name.toLowerCase() === 'content-type') type ??= headers[at + 1]
    else if (name.length === 16 && name.toLowerCase() === 'content-encoding') return false
  }
  return isJsonContentType(type)
}
