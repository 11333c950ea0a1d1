import { rpcMethod } from '../contract/rpc-methods.ts'
import type { Clock } from '../core/clock.ts'
import type { HttpCause, HttpOutcome, MovableUntil } from '../platform/http/client/exchange.ts'
import type { HttpPool } from '../platform/http/client/pool.ts'
import { contextSlotOf, slotResultOf } from './extract-slot.ts'
import type { NodeMeter, RetryReason, UpstreamsMetrics } from './metrics.ts'
import type { UpstreamNode } from './node.ts'
import type { CallOptions } from './options.ts'
import type { ClientView, Pool } from './pool/pool.ts'
import {
  CREDENTIAL_STATUSES,
  classify,
  type ExpectedResponse,
  failureOf,
  NO_UPSTREAM,
  type Reply,
  responseOf,
  type UpstreamResponse,
} from './response.ts'
import type { RetryBudget } from './retry-budget.ts'

/** One JSON-RPC POST: a call or a batch. */
export type UpstreamRequest = {
  readonly body: Uint8Array | string
  /** Length of the body in bytes, where the caller knows it. */
  readonly bodyBytes?: number | undefined
  /** A batch is a read when all of its calls are. */
  readonly kind: 'read' | 'write'
  readonly isHeavy: boolean
  /** Default: one. */
  readonly expects?: ExpectedResponse | undefined
  /** The method of a single call, where it is known. */
  readonly method?: string | undefined
  /** Whose call it is: one subscription gets only a part of the connections to a shared node while they are scarce. */
  readonly subscription?: string | undefined
  readonly view?: ClientView | undefined
  /** The monotonic time, where the caller has just read it. */
  readonly nowMs?: number | undefined
}

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
        movableUntil: this.#movableUntil(),
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
  #movableUntil(): MovableUntil | undefined {
    if (this.#first !== undefined) return undefined
    return this.#request.kind === 'read' ? 'response' : 'sent'
  }

  #settleReply(reply: Reply, tookMs: number, nowMs: number): void {
    const node = this.#node
    node.recordHeard(nowMs)
    const replyClass = classify(reply, this.#request.expects)
    const isGood = replyClass === 'good' || replyClass === 'elsewhere'
    const isFault = replyClass === 'refused' || replyClass === 'broken'
    if (isFault) {
      node.setLastFailure(`HTTP ${reply.head.status}`)
      node.breaker.recordAmbiguousFailure(CREDENTIAL_STATUSES.has(reply.head.status), nowMs)
    } else node.breaker.record(true, nowMs)
    this.#meter.call(isFault ? 'failed' : 'responded', tookMs)
    if (isGood) {
      node.recordLatency(tookMs)
      this.#extractSlot(reply.body)
    }
    const result = responseOf(reply, replyClass, { nodeName: node.name, isWrite: this.#request.kind === 'write' })
    if (replyClass === 'good' || replyClass === 'too-large') return this.#finish(result)
    const reason = replyClass === 'elsewhere' ? 'response' : 'status'
    if (this.#request.kind === 'read' && this.#retry(result, reason)) return
    this.#finish(isGood ? result : this.#betterOf(result))
  }

  #settleFailure({ kind, cause, message }: Exclude<HttpOutcome, Reply>, tookMs: number): void {
    // A call that has waited for a connection was not at the node: all are in use, perhaps by clients that read slowly.
    const isOurs = OUR_CAUSES.has(cause) || (cause === 'deadline' && kind === 'not-sent')
    // A heavy call past its deadline is more likely the call's fault than the node's.
    const isHeavyTimeout = cause === 'deadline' && this.#request.isHeavy
    if (!isOurs && !isHeavyTimeout) {
      this.#node.setLastFailure(message)
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
    if (reason === 'response' && other.health.isLagging) return false
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
    if (slot !== undefined && health.recordSlot(slot)) this.#pool.assess()
    // The client has seen its node's slot, at whichever commitment it asks next.
    if (view !== undefined && health.slot > view.slot) view.slot = health.slot
  }

  #finish(response: UpstreamResponse): void {
    if (this.#isAborted && response.kind === 'responded') response.rest?.abort()
    this.#deps.done(response)
  }
}
