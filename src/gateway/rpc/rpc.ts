import type { Caller } from '../../access/authorize.ts'
import type { PresentedToken } from '../../access/credentials.ts'
import type { Charged } from '../../access/quota/charge.ts'
import type { Access } from '../../access/service.ts'
import type { Clock } from '../../core/clock.ts'
import type { ResponseBudget } from '../../platform/http/response-budget.ts'
import type { HttpResponse, Responder, ResponseRest } from '../../platform/http/server/post.ts'
import type { LateRefusals } from '../auth-tarpit.ts'
import type { ListenerMeter } from '../metrics.ts'
import { type Refusal, refuseOverLimit, refuseSize, refuseToken, refuseUpstream } from '../refusal.ts'
import { createRpcBatch } from './batch.ts'
import { type FastPathCall, readFastPathCall } from './fast-path-call.ts'
import { spliceId } from './id-splice.ts'
import { budgetHeaders, jsonHeaders, NodeResponse } from './rate-limit-headers.ts'
import { refuse } from './refusal.ts'
import { isFastPathId, type RpcCall, type RpcItem, readRpcBody, writeCall } from './request.ts'
import { splitResponse } from './response.ts'

/** A request as both readers of the door hand it over. */
export type RpcRequest = {
  readonly requestId: string
  /** Who asks, for the rule that the slot one client sees never goes back. */
  readonly connection: object
}

export type RpcResponse = HttpResponse

/** What a call upstream came to. Of one that was not forwarded no byte left: the charge is taken back. */
export type UpstreamResponse =
  | { readonly kind: 'responded'; readonly body: Buffer; readonly rest?: ResponseRest | undefined }
  | { readonly kind: 'failed' | 'timeout'; readonly isForwarded: boolean }

type Responded = Extract<UpstreamResponse, { kind: 'responded' }>

export type UpstreamRequest = {
  readonly body: Buffer | string
  /** Length of the body where that is known to whoever wrote it. */
  readonly bodyBytes?: number | undefined
  readonly methods: readonly string[]
  /** Of a call that is not in a batch: what of it stands in the body, as text. */
  readonly single?: { readonly params: string | undefined; readonly id: string | undefined } | undefined
  readonly subscriptionId: string
  readonly connection: object
}

/** `done` is called exactly once, and not before this returns unless the answer is known already. `nowMs` where somebody has just looked. */
export type Forward = (request: UpstreamRequest, done: (response: UpstreamResponse) => void, nowMs?: number) => void

export type UpstreamCall = (request: UpstreamRequest) => Promise<UpstreamResponse>

export type RpcDeps = {
  readonly access: Access
  readonly forward: Forward
  readonly clock: Clock
  readonly meter: Pick<ListenerMeter, 'request' | 'refused' | 'late'>
  readonly late: LateRefusals
  readonly budget: ResponseBudget
}

export type Rpc = {
  /** Whose request it is, by its head alone: a body is read only of those who may send one, and only as far as they may. */
  authenticate(
    head: RpcHead,
    presented: PresentedToken,
    nowMs: number,
  ): Caller | { readonly ok: false; readonly response: RpcResponse | Promise<RpcResponse> }
  /** The bytes are good only until this returns. */
  respond(caller: Caller, body: Buffer, request: RpcRequest, responder: Responder): void
}

export type RpcHead = {
  /** Names and values in turn, as they came. */
  readonly headers: readonly string[]
  readonly requestId: string
  readonly connection: { readonly remoteAddress?: string | undefined }
}

/** Token, then body, then each call against the budget; what is admitted is forwarded, what is refused is answered here. */
export function createRpc({ access, forward, clock, meter, late, budget }: RpcDeps): Rpc {
  const forwardBatch = createRpcBatch({ access, forward, meter, budget, refusalOf })
  return {
    authenticate(head, presented, nowMs) {
      const caller = access.authenticate(presented, 'bundle', nowMs)
      if (caller.ok) return caller
      const response = refuse(refuseToken(caller.reason), head)
      const peer = { remoteAddress: head.connection.remoteAddress ?? '', headers: head.headers }
      return { ok: false, response: late.responded(peer, meter.late, response) }
    },

    respond(caller, bytes, request, responder) {
      const fastPathCall = readFastPathCall(bytes)
      if (fastPathCall !== undefined) return respondFastPath(request, caller, fastPathCall, responder)
      const body = readRpcBody(bytes.toString('utf8'), caller.limits)
      if (body.kind === 'refused') return responder.respond(plain(caller, body.response))
      if (body.kind === 'too-many') {
        meter.refused('batchItems', { subscription: caller.subscription.id, code: 'too-large' })
        return responder.respond(refuse(refuseSize('batchItems', body.limit), request))
      }
      if (!body.batch) return respondToOne(request, caller, body.items[0] as RpcItem, responder)
      forwardBatch(request, caller, body.items, responder)
    },
  }

  /** An answer of our own that cost nothing. */
  function plain(caller: Caller, body: string): RpcResponse {
    return { status: 200, headers: jsonHeaders(access.quota(caller), 0), body }
  }

  /** Nearly all requests are this: the call goes on as it was written, and its answer comes back as the node wrote it. */
  function respondFastPath(
    request: RpcRequest,
    caller: Caller,
    { call, text }: FastPathCall,
    responder: Responder,
  ): void {
    const { id } = call
    forwardOne(request, caller, call, { text, id, bodyBytes: text.length }, responder, (upstream, admission) => {
      responder.respond(new NodeResponse(upstream, admission, admission.cost))
    })
  }

  function respondToOne(request: RpcRequest, caller: Caller, item: RpcItem, responder: Responder): void {
    if ('refusal' in item) return responder.respond(plain(caller, item.refusal))
    const { call } = item
    const { id } = call
    const sentId = id === undefined || isFastPathId(id) ? id : '0'
    const sent = { text: writeCall(call, sentId), id: sentId, bodyBytes: undefined }
    forwardOne(request, caller, call, sent, responder, (upstream, admission) => {
      const { cost } = admission
      if (id === undefined) {
        upstream.rest?.abort()
        responder.respond({ status: 204, headers: budgetHeaders(admission, cost), body: '' })
      } else if (sentId === id) {
        responder.respond(new NodeResponse(upstream, admission, cost))
      } else {
        responder.respond(underOwnId(upstream, request, id, jsonHeaders(admission, cost)))
      }
    })
  }

  /** Nothing is put off on the way of a single call: what is known now is done now. */
  function forwardOne(
    request: RpcRequest,
    caller: Caller,
    { method, paramsText, id }: RpcCall,
    sent: { readonly text: string; readonly id: string | undefined; readonly bodyBytes: number | undefined },
    responder: Responder,
    onResponse: (upstream: Responded, admission: Charged) => void,
  ): void {
    const charged = { interface: 'rpc', method } as const
    const admission = access.admit(caller, charged)
    if (!admission.ok) {
      const budget = 'limit' in admission ? admission : undefined
      return responder.respond(refuse(refusalOf(admission, method), request, id, budget))
    }
    meter.request(method)
    const outgoing = {
      body: sent.text,
      bodyBytes: sent.bodyBytes,
      methods: [method],
      single: { params: paramsText, id: sent.id },
      subscriptionId: caller.subscription.id,
      connection: request.connection,
    }
    forward(outgoing, (upstream) => {
      try {
        if (upstream.kind === 'responded') return onResponse(upstream, admission)
        if (!upstream.isForwarded) access.refund(caller, charged)
        const code = upstream.kind === 'timeout' ? 'upstream-timeout' : 'no-upstream'
        responder.respond(refuse(refuseUpstream(code), request, id))
      } catch (error) {
        responder.fail(error)
      }
    })
  }

  /** The response with the client's id in it, where that was not sent as it is. */
  function underOwnId(
    upstream: Responded,
    request: RpcRequest,
    id: string,
    headers: RpcResponse['headers'],
  ): RpcResponse {
    const { body, rest } = upstream
    if (rest !== undefined) return { status: 200, headers, body: '', rest: spliceId({ body, rest }, id) }
    const text = body.toString('latin1')
    const found = splitResponse(text)
    if (found === undefined) return refuse(refuseUpstream('no-upstream'), request, id)
    const spliced = text.slice(0, found.idFrom) + Buffer.from(id).toString('latin1') + text.slice(found.idTo)
    return { status: 200, headers, body: Buffer.from(spliced, 'latin1') }
  }

  function refusalOf(admission: Exclude<ReturnType<Access['admit']>, { ok: true }>, method: string): Refusal {
    if (!('limitName' in admission)) return refuseToken(admission.reason)
    meter.refused(admission.limitName)
    return refuseOverLimit(admission, method, clock.nowMs())
  }
}

export { refuse }

/** For callers that wait. */
export function asked(forward: Forward): UpstreamCall {
  return (request) => new Promise((resolve) => forward(request, resolve))
}
