import { isJsonSpace, OPEN_BRACE, OPEN_BRACKET } from '../core/json-bytes.ts'
import type { HttpCause, HttpOutcome, PooledBody } from '../platform/http/client/exchange.ts'
import type { ResponseRest } from '../platform/http/response-rest.ts'
import { errorCodeOf, isJsonRpcBody } from './extract-slot.ts'

/** What a node responds to a request with. Nothing for notifications. */
export type ExpectedResponse = 'one' | 'batch' | 'nothing'

/** What a forwarded request came to. The same value travels from here to the server that sends it to the client. */
export type UpstreamResponse = NodeResponse | UpstreamFailure

/** The node's own bytes. */
export type NodeResponse = {
  readonly kind: 'responded'
  readonly status: number
  readonly body: Buffer
  /** The memory of the body: who has used the body up may release it. */
  readonly pooled?: PooledBody | undefined
  /** The part of a large response that is still to come. */
  readonly rest: ResponseRest | undefined
  readonly nodeName: string
}

/** `isSent`: bytes of the request may have reached a node, which may have executed it. A write must then not be repeated blindly. */
export type UpstreamFailure =
  | { readonly kind: 'no-upstream'; readonly isSent: false }
  /** Connections to the node are scarce, and the subscription has its share of them. */
  | { readonly kind: 'over-share'; readonly isSent: false }
  /** Not sent when no connection became free before the deadline. */
  | { readonly kind: 'timeout'; readonly isSent: boolean }
  | { readonly kind: 'failed-not-sent'; readonly isSent: false; readonly message: string }
  /** The node does not accept a request of this size, or with this content, and has not processed it. */
  | { readonly kind: 'too-large' | 'declined'; readonly isSent: false; readonly message: string }
  | { readonly kind: 'failed-maybe-sent'; readonly isSent: true; readonly message: string }

/** Errors of one node that another node may not have: it is behind, has no such block, or serves no history. */
const ELSEWHERE_CODES: ReadonlySet<number | undefined> = new Set([-32004, -32005, -32014, -32016, -32019])
/** Statuses that refuse the gateway rather than the customer: the node did not process the call. */
const REFUSED_STATUSES: ReadonlySet<number> = new Set([401, 403, 404, 405, 407, 429])
/** About the credential of the gateway, which all calls carry. */
export const CREDENTIAL_STATUSES: ReadonlySet<number> = new Set([401, 407])
const METHOD_NOT_FOUND = -32601
/** The request could not be read, or is none that the node takes: none of its calls was processed. */
const UNREAD_CODES: ReadonlySet<number> = new Set([-32700, -32600])
/** RFC 9110 section 15.5.14. Agave reads at most 50 KiB unless configured otherwise, and responds with text. */
const CONTENT_TOO_LARGE = 413

export type Reply = Extract<HttpOutcome, { kind: 'reply' }>
export type ReplyClass =
  | 'good'
  | 'elsewhere'
  /** The node did not process the call, because of its content: no fault of the node. */
  | 'declined'
  | 'too-large'
  | 'refused'
  | 'broken'

export const NO_UPSTREAM: UpstreamFailure = { kind: 'no-upstream', isSent: false }
const OVER_SHARE: UpstreamFailure = { kind: 'over-share', isSent: false }

/** The failure of a call that has no reply. */
export function failureOf(kind: 'not-sent' | 'maybe-sent', cause: HttpCause, message: string): UpstreamFailure {
  if (cause === 'deadline') return { kind: 'timeout', isSent: kind === 'maybe-sent' }
  if (cause === 'busy') return NO_UPSTREAM
  if (cause === 'share') return OVER_SHARE
  if (kind === 'not-sent') return { kind: 'failed-not-sent', isSent: false, message }
  return { kind: 'failed-maybe-sent', isSent: true, message }
}

/** What the reply of a node means for the call and for the node. */
export function classify({ head: { status }, body, rest }: Reply, expects: ExpectedResponse | undefined): ReplyClass {
  const first = firstByteOf(body)
  // JSON-RPC 2.0 section 6: a single object where the batch could not be read, so none of its calls was processed.
  const isBatchRefused = expects === 'batch' && first === OPEN_BRACE
  if (status >= 200 && status < 300) {
    // A large response of known length may have only its head here.
    if (first === undefined) return expects === 'nothing' || rest !== undefined ? 'good' : 'broken'
    if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return 'broken'
    if (isBatchRefused) return 'declined'
    return ELSEWHERE_CODES.has(errorCodeOf(body)) ? 'elsewhere' : 'good'
  }
  // Servers of JSON-RPC over HTTP may send this error with 404. It is a response to the call, and other nodes may respond otherwise.
  if (!isBatchRefused && errorCodeOf(body) === METHOD_NOT_FOUND && isJsonRpcBody(body)) return 'good'
  if (REFUSED_STATUSES.has(status) || (status >= 300 && status < 400)) return 'refused'
  if (status >= 500) return 'broken'
  if (isJsonRpcText(body)) return isBatchRefused ? 'declined' : 'good'
  return status === CONTENT_TOO_LARGE ? 'too-large' : 'declined'
}

/** Whether the beginning of a response is that of JSON-RPC, for a call or a batch, and not a text of the server. */
function isJsonRpcText(body: Buffer): boolean {
  const first = firstByteOf(body)
  return (first === OPEN_BRACE || first === OPEN_BRACKET) && body.includes('"jsonrpc"')
}

/** The first byte that is no white space of JSON. */
function firstByteOf(body: Buffer): number | undefined {
  for (const byte of body) if (!isJsonSpace(byte)) return byte
  return undefined
}

/** The error of one object for a batch of which the node, or a proxy before it, may have processed a part. */
function mayBeProcessed({ head: { status }, body }: Reply): boolean {
  if (firstByteOf(body) !== OPEN_BRACE || REFUSED_STATUSES.has(status)) return false
  const code = errorCodeOf(body)
  return code === undefined ? status < 300 : !UNREAD_CODES.has(code)
}

/**
 * A response to the customer's request is passed on. One about the gateway itself (its credential, its rate limit, an error page of a
 * proxy) is not: the customer would take it for a response about its own token. Nor is one that is no JSON-RPC: its client could not read it.
 */
export function responseOf(
  reply: Reply,
  replyClass: ReplyClass,
  { nodeName, isWrite }: { readonly nodeName: string; readonly isWrite: boolean },
): UpstreamResponse {
  const { head, body, pooled, rest } = reply
  if (replyClass === 'refused' || replyClass === 'declined' || replyClass === 'too-large') {
    rest?.abort()
    const message = `the node responded with HTTP ${head.status}`
    if (replyClass === 'too-large') return { kind: replyClass, isSent: false, message }
    if (isWrite && mayBeProcessed(reply)) return { kind: 'failed-maybe-sent', isSent: true, message }
    return { kind: replyClass === 'declined' ? replyClass : 'failed-not-sent', isSent: false, message }
  }
  if (replyClass === 'broken' && (rest !== undefined || !isJsonRpcBody(body))) {
    rest?.abort()
    return { kind: 'failed-maybe-sent', isSent: true, message: `the node responded with HTTP ${head.status}` }
  }
  return { kind: 'responded', status: head.status, body, pooled, rest, nodeName }
}
