import { rpcMethod } from '../contract/rpc-methods.ts'
import type { Clock } from '../core/clock.ts'
import { OPEN_BRACE, OPEN_BRACKET } from '../core/json-bytes.ts'
import type { HttpCause, HttpOutcome, MayMove, PooledBody } from '../platform/http/client/exchange.ts'
import type { HttpPool } from '../platform/http/client/pool.ts'
import type { ResponseRest } from '../platform/http/response-rest.ts'
import { contextSlotOf, errorCodeOf, isJsonRpcBody, slotResultOf } from './extract-slot.ts'
import type { NodeMeter, RetryReason, UpstreamsMetrics } from './metrics.ts'
import type { UpstreamNode } from './node.ts'
import type { CallOptions } from './options.ts'
import type { ClientView, Pool } from './pool/pool.ts'
import type { RetryBudget } from './retry-budget.ts'

/** One JSON-RPC POST: a call or a batch. */
export type UpstreamRequest = {
  readonly body: Uint8Array | string
  /** Length of the body in bytes, where the caller knows it. */
  readonly bodyBytes?: number | undefined
  /** A batch is a read when all of its calls are. */
  readonly kind: 'read' | 'write'
  readonly isHeavy: boolean
  /** What the node responds with; default: one response. Nothing for notifications. */
  readonly expects?: 'one' | 'batch' | 'nothing' | undefined
  /** The method of a single call, where it is known. */
  readonly method?: string | undefined
  /** Whose call it is: one subscription gets only a part of the connections to a shared node while they are scarce. */
  readonly subscription?: string | undefined
  readonly view?: ClientView | undefined
  /** The monotonic time, where the caller has just read it. */
  readonly nowMs?: number | undefined
}

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
  /** The node does not accept a request of this size, and has not processed it. */
  | { readonly kind: 'too-large'; readonly isSent: false; readonly message: string }
  | { readonly kind: 'failed-maybe-sent'; readonly isSent: true; readonly message: string }

export type ForwardDeps = {
  readonly clock: Clock
  readonly budget: RetryBudget
  readonly metrics: UpstreamsMetrics
  /** Called exactly once, never before `forwardCall` returns. */
  readonly done: (response: UpstreamResponse) => void
}

/** The nodes that a call may use: a pool, or one node of it. */
type NodeChoice = Pick<Pool, 'owner' | 'pick' | 'assess'>

/** The request of one call; whether it is a read and heavy comes from the contract. An unknown method counts as a write. */
export function upstreamRequest(method: string, body: Uint8Array, view?: ClientView): UpstreamRequest {
  const { kind, heavy } = rpcMethod(method)
  return { body, kind, isHeavy: heavy === true, method, view }
}

/** Errors of one node that another node may not have: it is behind, has no such block, or serves no history. */
const ELSEWHERE_CODES: ReadonlySet<number | undefined> = new Set([-32004, -32005, -32014, -32016, -32019])
/** Statuses that refuse the gateway rather than the customer: the node did not process the call. */
const REFUSED_STATUSES: ReadonlySet<number> = new Set([401, 403, 404, 405, 407, 429])

/** About the credential of the gateway, which all calls carry. */
const CREDENTIAL_STATUSES: ReadonlySet<number> = new Set([401, 407])

const METHOD_NOT_FOUND = -32601
/** The request could not be read, or is none that the node takes: none of its calls was processed. */
const UNREAD_CODES: ReadonlySet<number> = new Set([-32700, -32600])
/** RFC 9110 section 15.5.14. Agave reads at most 50 KiB unless configured otherwise, and responds with text. */
const CONTENT_TOO_LARGE = 413

type Reply = Extract<HttpOutcome, { kind: 'reply' }>
type ReplyClass =
  | 'good'
  | 'elsewhere'
  /** The node did not process the call, because of its content: no fault of the node. */
  | 'declined'
  | 'too-large'
  | 'refused'
  | 'broken'

const NO_UPSTREAM: UpstreamFailure = { kind: 'no-upstream', isSent: false }
const OVER_SHARE: UpstreamFailure = { kind: 'over-share', isSent: false }
/** Failures for which the node is not responsible; that it is silent is known already. */
const OUR_CAUSES: ReadonlySet<HttpCause> = new Set(['aborted', 'closed', 'busy', 'share', 'silent'])

/** Forwards one request to a node of the pool. */
export function forwardCall(
  pool: NodeChoice,
  request: UpstreamRequest,
  options: CallOptions,
  deps: ForwardDeps,
): { abort(): void } {
  return new ForwardedCall(pool, request, options, deps)
}

/** Forwards one request to this node, whatever its state, and to no other. */
export function forwardToNode(
  pool: Pool,
  node: UpstreamNode,
  request: UpstreamRequest,
  options: CallOptions,
  deps: ForwardDeps,
): void {
  const { owner, assess } = pool
  const only: NodeChoice = { owner, pick: (_kind, _view, except) => (except === node ? undefined : node), assess }
  new ForwardedCall(only, request, options, deps)
}

/**
 * A read that failed, whose node has become silent, or that another node may serve better, is retried on a second node once, within the
 * same deadline and the retry budget. A write is retried only when no byte of it was sent.
 */
class ForwardedCall {
  readonly #pool: NodeChoice
  readonly #request: UpstreamRequest
  readonly #deps: ForwardDeps
  readonly #deadlineAtMs: number
  #isAborted = false
  #running: { abort(): void } | undefined
  /** The node of the current attempt, and when that started. */
  #node!: UpstreamNode
  #meter!: NodeMeter
  #startedMs: number
  /** The result of the first attempt, returned where the second has no better one. */
  #first: UpstreamResponse | undefined

  constructor(pool: NodeChoice, request: UpstreamRequest, options: CallOptions, deps: ForwardDeps) {
    this.#pool = pool
    this.#request = request
    this.#deps = deps
    this.#startedMs = request.nowMs ?? deps.clock.monotonicMs()
    this.#deadlineAtMs = this.#startedMs + (request.isHeavy ? options.heavyDeadlineMs : options.deadlineMs)
    deps.budget.earn()
    const first = pool.pick('rpc', request.view)
    if (first?.http === undefined) {
      deps.metrics.noUpstream.inc()
      queueMicrotask(() => deps.done(NO_UPSTREAM))
    } else this.#attempt(first, first.http)
  }

  abort(): void {
    this.#isAborted = true
    this.#running?.abort()
  }

  #attempt(node: UpstreamNode, http: HttpPool): void {
    this.#node = node
    this.#meter = this.#deps.metrics.of(node.label)
    this.#meter.inFlight(1)
    this.#running = http.call(
      {
        body: this.#request.body,
        bodyBytes: this.#request.bodyBytes,
        deadlineMs: this.#deadlineAtMs - this.#startedMs,
        nowMs: this.#startedMs,
        mayMove: this.#mayMove(),
        // Dedicated nodes have no other user.
        owner: this.#pool.owner === undefined ? this.#request.subscription : undefined,
      },
      (outcome) => {
        const nowMs = this.#deps.clock.monotonicMs()
        const tookMs = nowMs - this.#startedMs
        this.#meter.inFlight(-1)
        if (outcome.kind === 'reply') this.#settleReply(outcome, tookMs, nowMs)
        else this.#settleFailure(outcome, tookMs)
      },
    )
  }

  /** Until when another node may take the call from a silent one. A call moves once. */
  #mayMove(): MayMove | undefined {
    if (this.#first !== undefined) return undefined
    return this.#request.kind === 'read' ? 'until-response' : 'until-sent'
  }

  #settleReply(reply: Reply, tookMs: number, nowMs: number): void {
    const node = this.#node
    node.heard(nowMs)
    const replyClass = classify(reply, this.#request.expects)
    const isGood = replyClass === 'good' || replyClass === 'elsewhere'
    const isFault = replyClass === 'refused' || replyClass === 'broken'
    if (isFault) {
      node.failed(`HTTP ${reply.head.status}`)
      node.breaker.recordDoubtful(CREDENTIAL_STATUSES.has(reply.head.status), nowMs)
    } else node.breaker.record(true, nowMs)
    this.#meter.call(isFault ? 'failed' : 'answered', tookMs)
    if (isGood) {
      node.responded(tookMs)
      this.#extractSlot(reply.body)
    }
    const result = responseOf(reply, replyClass, { nodeName: node.name, isWrite: this.#request.kind === 'write' })
    if (replyClass === 'good' || replyClass === 'too-large') return this.#finish(result)
    const reason = replyClass === 'elsewhere' ? 'answer' : 'status'
    if (this.#request.kind === 'read' && this.#retry(result, reason)) return
    this.#finish(isGood ? result : this.#betterOf(result))
  }

  #settleFailure({ kind, cause, message }: Exclude<HttpOutcome, Reply>, tookMs: number): void {
    // A call that has waited for a connection was not at the node: all are in use, perhaps by clients that read slowly.
    const isOurs = OUR_CAUSES.has(cause) || (cause === 'deadline' && kind === 'not-sent')
    // A heavy call past its deadline is more likely the call's fault than the node's.
    const isHeavyTimeout = cause === 'deadline' && this.#request.isHeavy
    if (!isOurs && !isHeavyTimeout) {
      this.#node.failed(message)
      this.#node.breaker.record(false)
    }
    this.#meter.call(cause === 'deadline' || cause === 'silent' ? 'timeout' : 'failed', tookMs)
    const result = failureOf(kind, cause, message)
    const mayRetry = kind === 'not-sent' || this.#request.kind === 'read'
    const reason =
      kind === 'not-sent' && cause !== 'stale' ? 'connect' : cause === 'stale' || cause === 'silent' ? cause : 'broken'
    if (mayRetry && this.#retry(result, reason)) return
    this.#finish(this.#betterOf(result))
  }

  /**
   * Retries on a second node, once. A request that was never sent costs no node anything and needs no budget; one that a silent node took needs none
   * either, because that node gets no further calls.
   */
  #retry(result: UpstreamResponse, reason: RetryReason): boolean {
    const { clock, budget, metrics } = this.#deps
    const nowMs = clock.monotonicMs()
    if (this.#first !== undefined || this.#isAborted || nowMs >= this.#deadlineAtMs) return false
    // A stale idle connection is no fault of its node, which may be the only one.
    const other =
      this.#pool.pick('rpc', this.#request.view, this.#node) ?? (reason === 'stale' ? this.#node : undefined)
    if (other?.http === undefined) return false
    // A node that lags too would return the same error.
    if (reason === 'answer' && other.health.isLagging) return false
    if (reason !== 'connect' && reason !== 'silent' && !budget.take()) {
      metrics.retriesRefused.inc()
      return false
    }
    metrics.retries[reason].inc()
    this.#first = result
    this.#startedMs = nowMs
    this.#attempt(other, other.http)
    return true
  }

  /** After a failed second attempt: a response of the first counts, and what the first may have sent stays sent. */
  #betterOf(result: UpstreamResponse): UpstreamResponse {
    const first = this.#first
    if (first?.kind === 'responded') return first
    if (first?.kind !== 'failed-maybe-sent') return result
    return result.kind === 'timeout' ? { kind: 'timeout', isSent: true } : first
  }

  #extractSlot(body: Buffer): void {
    const { method, view } = this.#request
    const { health } = this.#node
    const slot = method === 'getSlot' ? slotResultOf(body) : contextSlotOf(body)
    if (slot !== undefined && health.sawSlot(slot)) this.#pool.assess()
    // The client has seen its node's slot, at whichever commitment it asks next.
    if (view !== undefined && health.slot > view.slot) view.slot = health.slot
  }

  #finish(response: UpstreamResponse): void {
    if (this.#isAborted && response.kind === 'responded') response.rest?.abort()
    this.#deps.done(response)
  }
}

function failureOf(kind: 'not-sent' | 'maybe-sent', cause: HttpCause, message: string): UpstreamFailure {
  if (cause === 'deadline') return { kind: 'timeout', isSent: kind === 'maybe-sent' }
  if (cause === 'busy') return NO_UPSTREAM
  if (cause === 'share') return OVER_SHARE
  if (kind === 'not-sent') return { kind: 'failed-not-sent', isSent: false, message }
  return { kind: 'failed-maybe-sent', isSent: true, message }
}

function classify({ head: { status }, body, rest }: Reply, expects: UpstreamRequest['expects']): ReplyClass {
  const first = firstByteOf(body)
  // JSON-RPC 2.0 section 6: a single object where the batch could not be read, so none of its calls was processed.
  const isBatchRefused = expects === 'batch' && first === OPEN_BRACE
  if (status >= 200 && status < 300) {
    // Of a large response of known length perhaps only the head has come.
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
  for (const byte of body) if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte
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
function responseOf(
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
    return { kind: 'failed-not-sent', isSent: false, message }
  }
  if (replyClass === 'broken' && (rest !== undefined || !isJsonRpcBody(body))) {
    rest?.abort()
    return { kind: 'failed-maybe-sent', isSent: true, message: `the node responded with HTTP ${head.status}` }
  }
  return { kind: 'responded', status: head.status, body, pooled, rest, nodeName }
}
