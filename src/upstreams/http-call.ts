import { rpcMethod } from '../contract/rpc-methods.ts'
import type { Clock } from '../core/clock.ts'
import type { BodyRest, HttpOutcome } from '../platform/http/client/exchange.ts'
import type { HttpPool } from '../platform/http/client/pool.ts'
import type { ResponseHead } from '../platform/http/client/response-reader.ts'
import { contextSlotOf, errorCodeOf, isJsonRpcBody, slotResultOf } from './extract-slot.ts'
import type { NodeMeter, RetryReason, UpstreamsMetrics } from './metrics.ts'
import type { UpstreamNode } from './node.ts'
import type { CallOptions } from './options.ts'
import type { ClientView, Pool } from './pool.ts'
import type { RetryBudget } from './retry-budget.ts'

/** One JSON-RPC post, as the bytes that go out. */
export type UpstreamCall = {
  readonly body: Uint8Array | string
  /** Length of the body where that is known to whoever wrote it. */
  readonly bodyBytes?: number | undefined
  /** A batch is a read when all of its calls are. */
  readonly kind: 'read' | 'write'
  readonly isHeavy: boolean
  /** The method of a single call, where it is known. */
  readonly method?: string | undefined
  readonly view?: ClientView | undefined
  /** Now, where the caller has just looked at the clock. */
  readonly nowMs?: number | undefined
}

/** What became of it. The answer is the node's own bytes. */
export type CallOutcome =
  | {
      readonly kind: 'responded'
      readonly status: number
      readonly body: Buffer
      /** More of a large answer, to be read as a stream. */
      readonly rest: BodyRest | undefined
      readonly upstream: string
    }
  | { readonly kind: 'no-upstream'; readonly retryAfterMs: number }
  /** Not sent when no connection was free all the while. */
  | { readonly kind: 'timeout'; readonly isSent: boolean }
  /** Certainly not carried out. */
  | { readonly kind: 'failed-not-sent'; readonly message: string }
  /** May have been carried out; a write must not be repeated without looking. */
  | { readonly kind: 'failed-maybe-sent'; readonly message: string }

export type CallDeps = {
  readonly clock: Clock
  readonly budget: RetryBudget
  readonly metrics: UpstreamsMetrics
}

/** Fills in what the contract knows of a method. An unknown one counts as a write. */
export function callOf(method: string, body: Uint8Array, view?: ClientView): UpstreamCall {
  const { kind, heavy } = rpcMethod(method)
  return { body, kind, isHeavy: heavy === true, method, view }
}

/** Errors of a node that another node may not have (bundle.md section 13). */
const ELSEWHERE_CODES: ReadonlySet<number | undefined> = new Set([-32004, -32005, -32014, -32016, -32019])
/** Refusals of the node towards this gateway, not towards the customer: the call was not looked at. */
const REFUSED_STATUSES: ReadonlySet<number> = new Set([401, 403, 404, 405, 407, 429])
const RETRY_AFTER_MS = 1000

type Reply = Extract<HttpOutcome, { kind: 'reply' }>
type Verdict = 'good' | 'elsewhere' | 'refused' | 'broken'

/** Forwards one call; `done` is told what became of it, once and never before this returns. */
export function forwardCall(
  pool: Pool,
  call: UpstreamCall,
  options: CallOptions,
  deps: CallDeps & { readonly done: (outcome: CallOutcome) => void },
): { abort(): void } {
  return new ForwardedCall(pool, call, options, deps)
}

/**
 * One call on its way. A read that failed, or that another node may answer better, goes to a second node once, within the
 * same deadline and the retry budget. A write leaves once: it goes to a second node only when no byte of it left.
 */
class ForwardedCall {
  readonly #pool: Pool
  readonly #call: UpstreamCall
  readonly #deps: CallDeps & { readonly done: (outcome: CallOutcome) => void }
  readonly #deadlineAtMs: number
  #isAborted = false
  #running: { abort(): void } | undefined
  /** The node that has it now, and since when. */
  #node!: UpstreamNode
  #meter!: NodeMeter
  #startedMs: number
  /** What the first node answered, kept in case the second has nothing better. */
  #before: CallOutcome | undefined

  constructor(
    pool: Pool,
    call: UpstreamCall,
    options: CallOptions,
    deps: CallDeps & { readonly done: (outcome: CallOutcome) => void },
  ) {
    this.#pool = pool
    this.#call = call
    this.#deps = deps
    this.#startedMs = call.nowMs ?? deps.clock.monotonicMs()
    this.#deadlineAtMs = this.#startedMs + (call.isHeavy ? options.heavyDeadlineMs : options.deadlineMs)
    deps.budget.earn()
    const first = pool.pick('rpc', call.view)
    if (first?.http === undefined) {
      deps.metrics.noUpstream.inc()
      queueMicrotask(() => deps.done({ kind: 'no-upstream', retryAfterMs: RETRY_AFTER_MS }))
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
        body: this.#call.body,
        bodyBytes: this.#call.bodyBytes,
        deadlineMs: this.#deadlineAtMs - this.#startedMs,
        nowMs: this.#startedMs,
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

  #settleReply(reply: Reply, tookMs: number, nowMs: number): void {
    const node = this.#node
    const verdict = validate(reply)
    const isGood = verdict === 'good' || verdict === 'elsewhere'
    if (!isGood) node.lastFailure = `HTTP ${reply.head.status}`
    node.breaker.record(isGood, nowMs)
    this.#meter.call(isGood ? 'answered' : 'failed', tookMs)
    if (isGood) {
      node.responded(tookMs)
      this.#harvest(reply.body)
    }
    const result = outcomeOf(reply, verdict, node.name)
    if (verdict === 'good') return this.#finish(result)
    const why = verdict === 'elsewhere' ? 'answer' : 'status'
    if (this.#call.kind === 'read' && this.#tryOther(result, why)) return
    this.#finish(isGood ? result : this.#lastWord(result))
  }

  #settleFailure({ kind, cause, message }: Exclude<HttpOutcome, Reply>, tookMs: number): void {
    const isOurs = cause === 'aborted' || cause === 'closed' || cause === 'busy'
    // A heavy call past its deadline says more about the call than about the node, which others may be using.
    const isCallsOwn = cause === 'deadline' && this.#call.isHeavy
    if (!isOurs && !isCallsOwn) {
      this.#node.lastFailure = message
      this.#node.breaker.record(false)
    }
    this.#meter.call(cause === 'deadline' ? 'timeout' : 'failed', tookMs)
    const result: CallOutcome =
      cause === 'deadline'
        ? { kind: 'timeout', isSent: kind === 'maybe-sent' }
        : cause === 'busy'
          ? { kind: 'no-upstream', retryAfterMs: RETRY_AFTER_MS }
          : { kind: kind === 'not-sent' ? 'failed-not-sent' : 'failed-maybe-sent', message }
    const mayRepeat = kind === 'not-sent' || this.#call.kind === 'read'
    const why = cause === 'stale' ? 'stale' : kind === 'not-sent' ? 'connect' : 'broken'
    if (mayRepeat && this.#tryOther(result, why)) return
    this.#finish(this.#lastWord(result))
  }

  /** A second node, once. What never left a machine costs nothing upstream and so needs no budget. */
  #tryOther(result: CallOutcome, why: RetryReason): boolean {
    const { clock, budget, metrics } = this.#deps
    const nowMs = clock.monotonicMs()
    if (this.#before !== undefined || this.#isAborted || nowMs >= this.#deadlineAtMs) return false
    // A connection that died of idleness says nothing about its node, which may be the only one.
    const other = this.#pool.pick('rpc', this.#call.view, this.#node) ?? (why === 'stale' ? this.#node : undefined)
    if (other?.http === undefined) return false
    // Another node that is no further along would say the same.
    if (why === 'answer' && other.health.isLagging) return false
    if (why !== 'connect' && !budget.take()) {
      metrics.retriesRefused.inc()
      return false
    }
    metrics.retries[why].inc()
    this.#before = result
    this.#startedMs = nowMs
    this.#attempt(other, other.http)
    return true
  }

  /** The second node failed too: then an answer of the first is what there is, and what the first may have carried out was sent. */
  #lastWord(result: CallOutcome): CallOutcome {
    const before = this.#before
    if (before?.kind === 'responded') return before
    if (before?.kind !== 'failed-maybe-sent') return result
    return result.kind === 'timeout' ? { kind: 'timeout', isSent: true } : before
  }

  #harvest(body: Buffer): void {
    const { method, view } = this.#call
    const { health } = this.#node
    const slot = method === 'getSlot' ? slotResultOf(body) : contextSlotOf(body)
    if (slot !== undefined && health.sawSlot(slot)) this.#pool.assess()
    // The client is where its node is: for the next call that holds at every commitment.
    if (view !== undefined && health.slot > view.slot) view.slot = health.slot
  }

  #finish(outcome: CallOutcome): void {
    if (this.#isAborted && outcome.kind === 'responded') outcome.rest?.abort()
    this.#deps.done(outcome)
  }
}

function validate({ head: { status }, body }: Reply): Verdict {
  if (status >= 200 && status < 300) {
    if (!mayBeJson(body)) return 'broken'
    return ELSEWHERE_CODES.has(errorCodeOf(body)) ? 'elsewhere' : 'good'
  }
  if (REFUSED_STATUSES.has(status) || (status >= 300 && status < 400)) return 'refused'
  return status >= 500 ? 'broken' : 'good'
}

/** Told by the first byte; a notification is answered with nothing. */
function mayBeJson(body: Buffer): boolean {
  const [first] = body
  return first === undefined || first === 0x7b || first === 0x5b || first <= 0x20
}

/**
 * What the node says about the customer's request is passed on. What it says about this gateway (its credential, its
 * rate, a page of some proxy) is not: the customer would take it for an answer about its own token.
 */
function outcomeOf(reply: Reply, verdict: Verdict, upstream: string): CallOutcome {
  const { head, body, rest } = reply
  if (verdict === 'refused') {
    rest?.abort()
    return { kind: 'failed-not-sent', message: `the node answered HTTP ${head.status}` }
  }
  if (verdict === 'broken' && (rest !== undefined || !isJsonRpcBody(body))) {
    rest?.abort()
    return { kind: 'failed-maybe-sent', message: `the node answered HTTP ${head.status}` }
  }
  return responded(head, body, rest, upstream)
}

function responded(head: ResponseHead, body: Buffer, rest: BodyRest | undefined, upstream: string): CallOutcome {
  return { kind: 'responded', status: head.status, body, rest, upstream }
}
