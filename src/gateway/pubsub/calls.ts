import type { Caller } from '../../access/authorize.ts'
import type { Access } from '../../access/service.ts'
import type { HeldBytesLimit, ResponseBudget } from '../../platform/http/response-budget.ts'
import { type RpcCall, writeCall } from '../../solana/json/json-rpc.ts'
import { readCompleteResponse } from '../../upstreams/complete-response.ts'
import type { UpstreamResponse } from '../../upstreams/http-call.ts'
import type { ListenerMeter } from '../metrics.ts'
import {
  errorResponse,
  type RefusableRequest,
  type Refusal,
  refuseFailure,
  refuseHeldBytes,
  refuseUpstream,
} from '../refusal.ts'
import type { Forward } from '../rpc/forward.ts'
import { isFastPathId } from '../rpc/request.ts'
import { replaceId } from '../rpc/response-id.ts'
import { refuseLargeResponse, refuseOnConnection } from './refusal.ts'

/** Forwarded calls of one connection without a response yet. */
const IN_FLIGHT_MAX = 64
/** Less than the send buffer of a client: one response alone must not make it a slow client. */
const RESPONSE_BYTES_MAX = 2 * 1024 * 1024

export type WsCalls = {
  /** Forwards a call that has an id and was charged; resolves to the complete response. */
  forward(caller: Caller, call: RpcCall & { readonly id: string }): Promise<string | Buffer>
}

export type WsCallsDeps = {
  readonly access: Pick<Access, 'refund'>
  readonly forward: Forward
  /** The request that opened the connection. */
  readonly request: RefusableRequest
  /** Identifies the client: the slot it sees never goes back. */
  readonly connection: object
  readonly meter: Pick<ListenerMeter, 'refused'>
  /** A response is held until it has arrived completely. */
  readonly budget: ResponseBudget
}

/** Ordinary JSON-RPC calls over a WebSocket. */
export function createWsCalls(deps: WsCallsDeps): WsCalls {
  const { access, request, connection, meter, budget } = deps
  let inFlight = 0

  async function forward(caller: Caller, call: RpcCall & { readonly id: string }): Promise<string | Buffer> {
    const refuse = (refusal: Refusal) => errorResponse(refusal, request, call.id)
    const sentId = isFastPathId(call.id) ? call.id : '0'
    const outgoing = {
      body: Buffer.from(writeCall(call, sentId)),
      methods: [call.method],
      single: { params: call.paramsText, id: sentId },
      nodeUser: caller.nodeUser,
      connection,
    }
    const response = await new Promise<UpstreamResponse>((resolve) => deps.forward(outgoing, resolve))
    if (response.kind !== 'responded') {
      if (!response.isSent) access.refund(caller, { interface: 'ws', method: call.method })
      return refuse(refuseFailure(response))
    }
    const { id: owner } = caller.subscription
    let heldBytes = 0
    let limit: HeldBytesLimit | undefined
    const hold = (bytes: number): boolean => {
      if (!budget.acquire(owner, bytes)) {
        limit = budget.exceeded(owner, bytes) ?? 'heldBytes'
        return false
      }
      heldBytes += bytes
      return true
    }
    const body = await readCompleteResponse(response, { bytesMax: RESPONSE_BYTES_MAX, hold })
    budget.release(owner, heldBytes)
    if (body === 'over-budget' && limit !== undefined) {
      meter.refused(limit, { subscription: owner, code: 'overloaded' })
      return refuse(refuseHeldBytes(limit, budget.limits[limit]))
    }
    if (body === 'too-large') {
      meter.refused('answerBytes', { subscription: caller.subscription.id, code: 'too-large' })
      return refuse(refuseLargeResponse(RESPONSE_BYTES_MAX))
    }
    if (typeof body === 'string') return refuse(refuseUpstream('no-upstream'))
    if (sentId === call.id) return body
    return replaceId(body, call.id) ?? refuse(refuseUpstream('no-upstream'))
  }

  return {
    async forward(caller, call) {
      if (inFlight >= IN_FLIGHT_MAX) {
        meter.refused('callsInFlight', { subscription: caller.subscription.id, code: 'rate-limited' })
        access.refund(caller, { interface: 'ws', method: call.method })
        return errorResponse(refuseOnConnection('callsInFlight', IN_FLIGHT_MAX, 'calls in flight'), request, call.id)
      }
      inFlight += 1
      try {
        return await forward(caller, call)
      } finally {
        inFlight -= 1
      }
    },
  }
}
