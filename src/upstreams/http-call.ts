import { rpcMethod } from '../contract/rpc-methods.ts'
import type { Clock } from '../core/clock.ts'
import type { BodyRest, HttpOutcome } from '../host/http-exchange.ts'
import type { ResponseHead } from '../host/http-response-reader.ts'
import { contextSlotOf, errorCodeOf, isJsonRpcBody, slotResultOf } from './harvest.ts'
import type { RetryReason, UpstreamsMetrics } from './metrics.ts'
import type { UpstreamNode } from './node.ts'
import type { CallOptions } from './options.ts'
import type { ClientView, Pool } from './pool.ts'
import type { RetryBudget } from './retry-budget.ts'

/** One JSON-RPC post, as the bytes that go out. */
export type UpstreamCall = {
  readonly body: Uint8Array
  /** A batch is a read when all of its calls are. */
  readonly kind: 'read' | 'write'
  readonly isHeavy: boolean
  /** The method of a single call, where it is known. */
  readonly method?: string | undefined
  readonly view?: ClientView | undefined
}

/** What became of it. The answer is the node's own bytes. */
export type CallOutcome =
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly contentType: string | undefined
      readonly contentEncoding: string | undefined
      readonly body: Buffer
      /** More of a large answer, to be read as a stream. */
      readonly rest: BodyRest | undefined
      readonly upstream: string
    }
  | { readonly kind: 'no-upstream'; readonly retryAfterMs: number }
  | { readonly kind: 'timeout' }
  /** Certainly not carried out. */
  | { readonly kind: 'failed-not-sent'; readonly says: string }
  /** May have been carried out; a write must not be repeated without looking. */
  | { readonly kind: 'failed-maybe-sent'; readonly says: string }

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

/**
 * Forwards one call. A read that failed, or that another node may answer better, goes to a second node once, within the
 * same deadline and the retry budget. A write leaves once: it goes to a second node only when no byte of it left.
 */
export function forwardCall(
  pool: Pool,
  call: UpstreamCall,
  options: CallOptions,
  { clock, budget, metrics, done }: CallDeps & { readonly done: (outcome: CallOutcome) => void },
): { abort(): void } {
  const deadlineAtMs = clock.monotonicMs() + (call.isHeavy ? options.heavyDeadlineMs : options.deadlineMs)
  let running: { abort(): void } | undefined
  let isAborted = false
  budget.earn()

  const first = pool.pick('rpc', call.view)
  if (first?.http === undefined) {
    metrics.noUpstream.inc()
    queueMicrotask(() => done({ kind: 'no-upstream', retryAfterMs: RETRY_AFTER_MS }))
  } else attempt(first, undefined)

  /** `before` is what the first node answered, kept in case the second has nothing better. */
  function attempt(node: UpstreamNode, before: CallOutcome | undefined): void {
    const startedMs = clock.monotonicMs()
    const meter = metrics.of(node.label)
    meter.inFlight(1)
    running = node.http?.call({ body: call.body, deadlineMs: deadlineAtMs - startedMs }, (outcome) => {
      meter.inFlight(-1)
      const tookMs = clock.monotonicMs() - startedMs
      if (outcome.kind === 'reply') settleReply(node, outcome, tookMs)
      else settleFailure(node, outcome)
    })

    function settleReply(on: UpstreamNode, reply: Reply, tookMs: number): void {
      const verdict = judge(reply)
      const isGood = verdict === 'good' || verdict === 'elsewhere'
      if (!isGood) on.lastFailure = `HTTP ${reply.head.status}`
      on.breaker.record(isGood)
      meter.call(isGood ? 'answered' : 'failed', tookMs)
      if (isGood) {
        on.answered(tookMs)
        harvest(on, reply.body)
      }
      const result = outcomeOf(reply, verdict, on.name)
      if (verdict === 'good') return finish(result)
      const why = verdict === 'elsewhere' ? 'answer' : 'status'
      if (call.kind === 'read' && before === undefined && tryOther(on, result, why)) return
      finish(before?.kind === 'answered' && !isGood ? before : result)
    }

    function settleFailure(on: UpstreamNode, { kind, cause, says }: Exclude<HttpOutcome, Reply>): void {
      const isOurs = cause === 'aborted' || cause === 'closed' || cause === 'busy'
      if (!isOurs) {
        on.lastFailure = says
        on.breaker.record(false)
      }
      meter.call(cause === 'deadline' ? 'timeout' : 'failed', clock.monotonicMs() - startedMs)
      const result: CallOutcome =
        cause === 'deadline'
          ? { kind: 'timeout' }
          : cause === 'busy'
            ? { kind: 'no-upstream', retryAfterMs: RETRY_AFTER_MS }
            : { kind: kind === 'not-sent' ? 'failed-not-sent' : 'failed-maybe-sent', says }
      const mayRepeat = kind === 'not-sent' || call.kind === 'read'
      const why = kind === 'not-sent' ? 'connect' : cause === 'stale' ? 'stale' : 'broken'
      if (mayRepeat && before === undefined && tryOther(on, result, why)) return
      finish(before?.kind === 'answered' ? before : result)
    }
  }

  /** What never left a machine costs nothing upstream and so needs no budget. */
  function tryOther(than: UpstreamNode, result: CallOutcome, why: RetryReason): boolean {
    if (isAborted || clock.monotonicMs() >= deadlineAtMs) return false
    // A connection that died of idleness says nothing about its node, which may be the only one.
    const other = pool.pick('rpc', call.view, than) ?? (why === 'stale' ? than : undefined)
    if (other?.http === undefined) return false
    // Another node that is no further along would say the same.
    if (why === 'answer' && other.health.isLagging) return false
    if (why !== 'connect' && !budget.take()) {
      metrics.retriesRefused.inc()
      return false
    }
    metrics.retries[why].inc()
    attempt(other, result)
    return true
  }

  function harvest(node: UpstreamNode, body: Buffer): void {
    const slot = call.method === 'getSlot' ? slotResultOf(body) : contextSlotOf(body)
    if (slot !== undefined && node.health.sawSlot(slot)) pool.assess()
    // The client is where its node is: for the next call that holds at every commitment.
    if (call.view !== undefined && node.health.slot > call.view.slot) call.view.slot = node.health.slot
  }

  function finish(outcome: CallOutcome): void {
    if (isAborted && outcome.kind === 'answered') outcome.rest?.abort()
    done(outcome)
  }

  return {
    abort() {
      isAborted = true
      running?.abort()
    },
  }
}

function judge({ head: { status }, body }: Reply): Verdict {
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
    return { kind: 'failed-not-sent', says: `the node answered HTTP ${head.status}` }
  }
  if (verdict === 'broken' && (rest !== undefined || !isJsonRpcBody(body))) {
    rest?.abort()
    return { kind: 'failed-maybe-sent', says: `the node answered HTTP ${head.status}` }
  }
  return answered(head, body, rest, upstream)
}

function answered(head: ResponseHead, body: Buffer, rest: BodyRest | undefined, upstream: string): CallOutcome {
  const { status, contentType, contentEncoding } = head
  return { kind: 'answered', status, contentType, contentEncoding, body, rest, upstream }
}
