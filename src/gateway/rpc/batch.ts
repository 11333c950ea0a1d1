import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import type { FreeRefusals } from '../../access/free-refusals.ts'
import type { Charged, RemainingQuota } from '../../access/quota/charge.ts'
import type { HeldBytes, HeldBytesLimit } from '../../platform/http/held-bytes.ts'
import { type HttpResponse, PIECE_BYTES, type ResponseSink } from '../../platform/http/server/post.ts'
import { type RpcCall, writeCall } from '../../solana/json/json-rpc.ts'
import type { NodeResponse } from '../../upstreams/response.ts'
import type { ListenerMeter } from '../metrics.ts'
import {
  errorResponse,
  failureRefusal,
  heldBytesRefusal,
  heldResponseRefusal,
  isRefunded,
  type Refusal,
  upstreamRefusal,
} from '../refusal.ts'
import { type BatchPart, BatchSplice } from './batch-splice.ts'
import type { Forward } from './forward.ts'
import { jsonHeaders, rateLimitHeaders, refusalResponse, refusalResponseWith } from './http-response.ts'
import type { RpcItem, RpcRequest } from './request.ts'

export type ForwardBatchDeps = {
  readonly access: Access
  readonly forward: Forward
  readonly meter: Pick<ListenerMeter, 'request' | 'refused'>
  readonly heldBytes: HeldBytes
  readonly freeRefusals: FreeRefusals
  refusalOf(admission: Exclude<ReturnType<Access['admit']>, { ok: true }>, method: string): Refusal
  chargeRefused(caller: Caller, bytes: number): ChargedRefusal
}

/** What was charged for work that its checks have refused. `refusal` is set where the plan has no units for it. */
export type ChargedRefusal = {
  readonly quota: RemainingQuota
  readonly cost: number
  readonly refusal?: Refusal
}

type Batch = { readonly items: readonly RpcItem[]; readonly bytes: number }
type ForwardBatch = (request: RpcRequest, caller: Caller, batch: Batch, sink: ResponseSink) => void

/**
 * Charges each call of a batch separately, forwards the admitted ones together, and writes the response in the order of the calls while the
 * upstream's arrives. Status and headers are known before that: they depend on the admission of the calls alone.
 */
export function createForwardBatch({
  access,
  forward,
  meter,
  heldBytes,
  freeRefusals,
  refusalOf,
  chargeRefused,
}: ForwardBatchDeps): ForwardBatch {
  return (request, caller, batch, sink) => {
    const limit = heldBytes.exceeded(caller.subscription.id, PIECE_BYTES)
    if (limit !== undefined) {
      meter.refused(limit, { subscription: caller.subscription.id, code: 'overloaded' })
      return sink.respond(
        refusalResponse(heldBytesRefusal(limit, heldBytes.limits[limit]), request, { quota: access.quota(caller) }),
      )
    }
    const { parts, calls, charges, refusedCost, lastLimit } = admit(request, caller, batch)
    if (calls.length === 0) return sink.respond(ownResponse(caller, parts, refusedCost, lastLimit))
    const outgoing = {
      body: Buffer.from(`[${calls.map((call, at) => writeCall(call, sentIdOf(call, at))).join(',')}]`),
      methods: calls.map(({ method }) => method),
      expects: calls.some(({ id }) => id !== undefined) ? ('batch' as const) : ('nothing' as const),
      nodeUser: caller.nodeUser,
      connection: request.connection,
    }
    forward(outgoing, (response) => {
      try {
        const cost = charges.reduce((sum, charge) => sum + charge.cost, refusedCost)
        if (response.kind === 'responded')
          return sink.respond(forwardedResponse(request, caller, parts, cost, response))
        const failureOf = (part: { readonly sentId: string }) =>
          failureRefusal(response, charges[Number(part.sentId)]?.cost ?? 0)
        const texts = parts.map((part) =>
          'text' in part ? part : { text: errorResponse(failureOf(part), request, part.id) },
        )
        if (response.isSent) return sink.respond(ownResponse(caller, texts, cost))
        const isFree = isRefunded(response, freeRefusals, { subscription: caller.subscription.id, bytes: batch.bytes })
        for (const [at, { method }] of isFree ? calls.entries() : [])
          access.refund(caller, { interface: 'rpc', method }, charges[at])
        const charged = isFree ? refusedCost : cost
        sink.respond(ownResponse(caller, texts, charged, lastLimit ?? failureRefusal(response, cost)))
      } catch (error) {
        sink.fail(error)
      }
    })
  }

  /** The calls to forward with the charge of each, and the parts of the response in order; a notification has no part. */
  function admit(request: RpcRequest, caller: Caller, { items, bytes }: Batch) {
    const parts: BatchPart[] = []
    const calls: RpcCall[] = []
    const charges: Charged[] = []
    let refusedCost = 0
    let lastLimit: Refusal | undefined
    for (const item of items) {
      if ('refusal' in item) {
        const outcome = chargeRefused(caller, bytes / items.length)
        refusedCost += outcome.cost
        lastLimit = outcome.refusal ?? lastLimit
        parts.push({ text: outcome.refusal ? errorResponse(outcome.refusal, request, item.id) : item.refusal })
        continue
      }
      const { call } = item
      const admission = access.admit(caller, { interface: 'rpc', method: call.method })
      if (admission.ok) {
        meter.request(call.method)
        if (call.id !== undefined) parts.push({ sentId: String(calls.length), id: call.id })
        calls.push(call)
        charges.push(admission)
      } else {
        lastLimit = refusalOf(admission, call.method)
        if (call.id !== undefined) parts.push({ text: errorResponse(lastLimit, request, call.id) })
      }
    }
    return { parts, calls, charges, refusedCost, lastLimit }
  }

  /** The response without a node's; status and headers are those of `refusal`, where every call is refused. */
  function ownResponse(caller: Caller, parts: readonly BatchPart[], cost: number, refusal?: Refusal): HttpResponse {
    const body = parts.length === 0 ? '' : `[${parts.map((part) => ('text' in part ? part.text : '')).join(',')}]`
    const quota = access.quota(caller)
    if (refusal !== undefined) return refusalResponseWith(body, refusal, { quota, cost })
    if (body === '') return noContent(caller, cost)
    return { status: 200, headers: jsonHeaders(quota, cost), body }
  }

  function forwardedResponse(
    request: RpcRequest,
    caller: Caller,
    parts: readonly BatchPart[],
    cost: number,
    response: NodeResponse,
  ): HttpResponse {
    if (parts.length === 0) {
      response.rest?.abort()
      return noContent(caller, cost)
    }
    const errorFor = (id: string, limit: HeldBytesLimit | undefined): string => {
      if (limit === undefined) return errorResponse(upstreamRefusal('no-upstream'), request, id)
      meter.refused(limit, { subscription: caller.subscription.id, code: 'overloaded' })
      return errorResponse(heldResponseRefusal(limit, heldBytes.limits[limit]), request, id)
    }
    const splice = new BatchSplice(parts, response, { heldBytes, owner: caller.subscription.id, errorFor })
    const headers = jsonHeaders(access.quota(caller), cost)
    if (response.rest !== undefined) return { status: 200, headers, body: '', rest: splice }
    return { status: 200, headers, body: completeBody(splice) }
  }

  function noContent(caller: Caller, cost: number): HttpResponse {
    return { status: 204, headers: rateLimitHeaders(access.quota(caller), cost), body: '' }
  }
}

/** Calls are forwarded under ids of the gateway, so that responses in any order, and to equal ids, are matched to their calls. */
function sentIdOf({ id }: RpcCall, at: number): string | undefined {
  return id === undefined ? undefined : String(at)
}

/** The batch response where the upstream's has arrived in full. */
function completeBody(splice: BatchSplice): Buffer {
  const pieces: Buffer[] = []
  splice.start({ onData: (piece) => void pieces.push(piece), onEnd() {}, onFail() {} })
  return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
}
