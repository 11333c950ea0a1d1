import { isUtf8 } from 'node:buffer'
import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import type { PresentedToken } from '../../access/credentials.ts'
import { explainRefusal } from '../../access/explain-refusal.ts'
import type { FreeRefusals } from '../../access/free-refusals.ts'
import type { Charged, RemainingQuota } from '../../access/quota/charge.ts'
import { OTHER_METHOD } from '../../access/terms.ts'
import type { ProductKey } from '../../contract/products.ts'
import type { Clock } from '../../core/clock.ts'
import type { HeldBytes } from '../../platform/http/held-bytes.ts'
import { splitTarget } from '../../platform/http/request-headers.ts'
import type { HttpResponse, ResponseSink } from '../../platform/http/server/post.ts'
import type { AuthTarpit } from '../../platform/net/auth-tarpit.ts'
import { type RpcCall, writeCall } from '../../solana/json/json-rpc.ts'
import type { NodeResponse } from '../../upstreams/response.ts'
import type { ListenerMeter } from '../metrics.ts'
import {
  callerRefusal,
  failureRefusal,
  isRefunded,
  overLimitRefusal,
  type RefusableRequest,
  type Refusal,
  sizeRefusal,
  tokenRefusal,
  upstreamRefusal,
} from '../refusal.ts'
import { type ChargedRefusal, createForwardBatch } from './batch.ts'
import { readFastPathCall } from './fast-path-call.ts'
import type { Forward } from './forward.ts'
import { ForwardedResponse, jsonHeaders, rateLimitHeaders, refusalResponse } from './http-response.ts'
import { bodyErrorText, isFastPathId, type RpcItem, type RpcRequest, readRpcBody } from './request.ts'
import { replaceId, replaceIdInStream } from './response-id.ts'

export type RpcDeps = {
  readonly access: Access
  readonly forward: Forward
  readonly clock: Clock
  readonly meter: Pick<ListenerMeter, 'request' | 'refused' | 'delayedRefusals'>
  readonly tarpit: AuthTarpit
  readonly heldBytes: HeldBytes
  readonly freeRefusals: FreeRefusals
}

export type Rpc = {
  /** Authenticates by the head alone: a body is read only for a valid token, and only up to the limit of its plan. */
  authenticate(
    head: RpcHead,
    presented: PresentedToken,
    nowMs: number,
    product?: ProductKey,
  ): Caller | { readonly ok: false; readonly response: HttpResponse | Promise<HttpResponse> }
  /** Forwards the calls of a body and sends the response. The bytes are valid only until this returns. */
  forward(caller: Caller, body: Buffer, request: RpcRequest, sink: ResponseSink): void
  /** Refuses a body of this size by its checks: charged where too many are. */
  refuseBody(caller: Caller, refusal: Refusal, request: RefusableRequest, bytes: number): HttpResponse
  /** Refuses a body that cannot be inflated, as one that is not JSON; `bytes` are what inflating it has cost. */
  refuseUnreadable(caller: Caller, request: RefusableRequest, bytes: number): HttpResponse
  /** What is left of the caller's units. */
  quota(caller: Caller): RemainingQuota
  /** Counts bytes of a response's body that were sent to the caller. */
  countSent(caller: Caller, bytes: number): void
}

export type RpcHead = RefusableRequest & {
  /** Path and query as received. */
  readonly target: string
  /** Names and values alternating, as received. */
  readonly headers: readonly string[]
  readonly connection: { readonly remoteAddress?: string | undefined }
}

/** A call as it is sent to the node. */
type SentCall = { readonly text: string; readonly id: string | undefined; readonly bodyBytes: number | undefined }

type CallItem = Extract<RpcItem, { readonly call: RpcCall }>

/** Token, then body, then each call against the quota. Admitted calls are forwarded; refused ones get their response here. */
export function createRpc({ access, forward, clock, meter, tarpit, heldBytes, freeRefusals }: RpcDeps): Rpc {
  const forwardBatch = createForwardBatch({ access, forward, meter, heldBytes, freeRefusals, refusalOf, chargeRefused })
  return {
    authenticate(head, presented, nowMs, product = 'bundle') {
      const caller = access.authenticate(presented, product, nowMs)
      if (caller.ok) return caller
      const { query } = splitTarget(head.target)
      const explained = explainRefusal('rpc', caller, { headers: head.headers, query })
      const response = refusalResponse(tokenRefusal(explained), head)
      const peer = { remoteAddress: head.connection.remoteAddress ?? '', headers: head.headers }
      return { ok: false, response: tarpit.delayResponse(peer, meter.delayedRefusals, response) }
    },

    forward(caller, bytes, request, sink) {
      const fast = readFastPathCall(bytes)
      if (fast !== undefined) {
        const { call, text } = fast
        return forwardCall(request, caller, call, { text, id: call.id, bodyBytes: text.length }, sink)
      }
      // Decoded anyway, other bytes than UTF-8 would be forwarded with replacement characters.
      const refuseAs = (body: string) => sink.respond(respondWithItemErrors(caller, body, request, bytes.length))
      if (!isUtf8(bytes)) return refuseAs(bodyErrorText('parse-error', request))
      const body = readRpcBody(bytes.toString('utf8'), caller.limits, request)
      if (body.kind === 'refused') return refuseAs(body.response)
      if (body.kind === 'too-many') {
        meter.refused('batchItems', { subscription: caller.subscription.id, code: 'too-large' })
        return sink.respond(refuseAndCharge(caller, sizeRefusal('batchItems', body.limit), request, bytes.length))
      }
      const [item] = body.items
      if (!body.batch && item !== undefined && 'refusal' in item) return refuseAs(item.refusal)
      if (!body.batch) return forwardItem(request, caller, item as CallItem, sink)
      forwardBatch(request, caller, { items: body.items, bytes: bytes.length }, sink)
    },

    refuseBody: refuseAndCharge,
    refuseUnreadable: (caller, request, bytes) =>
      respondWithItemErrors(caller, bodyErrorText('parse-error', request), request, bytes),
    quota: access.quota,
    countSent: (caller, bytes) => access.countBytes(caller, 'rpc', bytes),
  }

  /** Charges what its checks have refused, unless it is free. Where the plan has no units for it, that is the refusal. */
  function chargeRefused(caller: Caller, bytes: number): ChargedRefusal {
    if (freeRefusals.take(caller.subscription.id, bytes)) return { quota: access.quota(caller), cost: 0 }
    const admission = access.admit(caller, { interface: 'rpc', method: OTHER_METHOD })
    if (admission.ok) return { quota: admission, cost: admission.cost }
    const quota = 'limit' in admission ? admission : access.quota(caller)
    return { quota, cost: 0, refusal: refusalOf(admission, OTHER_METHOD) }
  }

  function refuseAndCharge(caller: Caller, refusal: Refusal, request: RefusableRequest, bytes: number): HttpResponse {
    const outcome = chargeRefused(caller, bytes)
    return refusalResponse(outcome.refusal ?? refusal, request, outcome)
  }

  /** The same where the body is no call: the refusal is in the response alone, as JSON-RPC has it. */
  function respondWithItemErrors(caller: Caller, body: string, request: RefusableRequest, bytes: number): HttpResponse {
    const { quota, cost, refusal } = chargeRefused(caller, bytes)
    if (refusal !== undefined) return refusalResponse(refusal, request, { quota })
    return { status: 200, headers: jsonHeaders(quota, cost), body }
  }

  function forwardItem(request: RpcRequest, caller: Caller, { call }: CallItem, sink: ResponseSink): void {
    const sentId = call.id === undefined || isFastPathId(call.id) ? call.id : '0'
    const sent = { text: writeCall(call, sentId), id: sentId, bodyBytes: undefined }
    forwardCall(request, caller, call, sent, sink)
  }

  /** Nearly every request comes through here. Nothing is deferred: no promise, no timer. */
  function forwardCall(
    request: RpcRequest,
    caller: Caller,
    { method, paramsText, id }: RpcCall,
    sent: SentCall,
    sink: ResponseSink,
  ): void {
    const billedCall = { interface: 'rpc', method } as const
    const admission = access.admit(caller, billedCall)
    if (!admission.ok) {
      const quota = 'limit' in admission ? admission : access.quota(caller)
      return sink.respond(refusalResponse(refusalOf(admission, method), request, { id, quota }))
    }
    meter.request(method)
    const outgoing = {
      body: sent.text,
      bodyBytes: sent.bodyBytes,
      methods: [method],
      single: { params: paramsText, id: sent.id },
      expects: sent.id === undefined ? ('nothing' as const) : undefined,
      nodeUser: caller.nodeUser,
      connection: request.connection,
    }
    forward(outgoing, (response) => {
      try {
        if (response.kind === 'responded') {
          return sink.respond(responseFor(request, { id, sentId: sent.id }, response, admission))
        }
        const asked = { subscription: caller.subscription.id, bytes: sent.text.length }
        const isFree = isRefunded(response, freeRefusals, asked)
        if (isFree) access.refund(caller, billedCall, admission)
        const cost = isFree ? 0 : admission.cost
        const refusal = failureRefusal(response, admission.cost)
        sink.respond(refusalResponse(refusal, request, { id, quota: access.quota(caller), cost }))
      } catch (error) {
        sink.fail(error)
      }
    })
  }

  /** The node's bytes, with the client's id where the call was sent under another; no body for a notification. */
  function responseFor(
    request: RpcRequest,
    { id, sentId }: { readonly id: string | undefined; readonly sentId: string | undefined },
    response: NodeResponse,
    admission: Charged,
  ): HttpResponse {
    const { body, rest } = response
    if (id === undefined) {
      rest?.abort()
      return { status: 204, headers: rateLimitHeaders(admission, admission.cost), body: '' }
    }
    if (id === sentId) return new ForwardedResponse(response, admission, admission.cost)
    const headers = jsonHeaders(admission, admission.cost)
    if (rest !== undefined) return { status: 200, headers, body: '', rest: replaceIdInStream({ body, rest }, id) }
    const replaced = replaceId(body, id)
    const { cost } = admission
    if (replaced === undefined)
      return refusalResponse(upstreamRefusal('no-upstream'), request, { id, quota: admission, cost })
    return { status: 200, headers, body: replaced }
  }

  /** The refusal of a call that was not admitted. Its limit is counted. */
  function refusalOf(admission: Exclude<ReturnType<Access['admit']>, { ok: true }>, method: string): Refusal {
    if (!('limitName' in admission)) return callerRefusal('rpc', admission)
    meter.refused(admission.limitName)
    return overLimitRefusal(admission, method, clock.nowMs())
  }
}
