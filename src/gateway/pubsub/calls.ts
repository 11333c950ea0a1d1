import type { Caller } from '../../access/authorize.ts'
import type { Access } from '../../access/service.ts'
import type { HeldBytesLimit, ResponseBudget } from '../../platform/http/response-budget.ts'
import { readWholeResponse } from '../../upstreams/whole-response.ts'
import type { ListenerMeter } from '../metrics.ts'
import { refuseHeldBytes, refuseUpstream } from '../refusal.ts'
import { isFastPathId, type RpcCall, writeCall } from '../rpc/request.ts'
import { responseUnderId } from '../rpc/response.ts'
import type { UpstreamCall } from '../rpc/rpc.ts'
import { refusalResponse, refuseLargeResponse, refuseOnConnection } from './refusal.ts'

/** Calls of one connection that are on their way to a node at once. */
const IN_FLIGHT_MAX = 64
/** Below what may wait for a client: an answer alone must not make it too slow. */
const RESPONSE_BYTES_MAX = 2 * 1024 * 1024

export type WsCalls = {
  /** Forwards a call that has an id and was charged; gives the whole answer. */
  forward(caller: Caller, call: RpcCall & { readonly id: string }): Promise<string | Buffer>
}

export type WsCallsDeps = {
  readonly access: Pick<Access, 'refund'>
  readonly callUpstream: UpstreamCall
  readonly requestId: string
  /** The connection, for the rule that the slot one client sees never goes back. */
  readonly connection: object
  readonly meter: Pick<ListenerMeter, 'refused'>
  /** A response is held until all of it has arrived. */
  readonly budget: ResponseBudget
}

/** Ordinary JSON-RPC calls over a WebSocket. */
export function createWsCalls(deps: WsCallsDeps): WsCalls {
  const { access, callUpstream, requestId, connection, meter, budget } = deps
  let inFlight = 0

  async function ask(caller: Caller, call: RpcCall & { readonly id: string }): Promise<string | Buffer> {
    const refuse = (refusal: Parameters<typeof refusalResponse>[0]) => refusalResponse(refusal, requestId, call.id)
    const sentId = isFastPathId(call.id) ? call.id : '0'
    const outcome = await callUpstream({
      body: Buffer.from(writeCall(call, sentId)),
      methods: [call.method],
      single: { params: call.paramsText, id: sentId },
      subscriptionId: caller.subscription.id,
      connection,
    })
    if (outcome.kind !== 'responded') {
      if (!outcome.isForwarded) access.refund(caller, { interface: 'ws', method: call.method })
      return refuse(refuseUpstream(outcome.kind === 'timeout' ? 'upstream-timeout' : 'no-upstream'))
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
    const whole = await readWholeResponse(outcome, { bytesMax: RESPONSE_BYTES_MAX, hold })
    budget.release(owner, heldBytes)
    if (whole === 'no-room' && limit !== undefined) {
      meter.refused(limit, { subscription: owner, code: 'overloaded' })
      return refuse(refuseHeldBytes(limit, budget.limits[limit]))
    }
    if (whole === 'too-large') {
      meter.refused('answerBytes', { subscription: caller.subscription.id, code: 'too-large' })
      return refuse(refuseLargeResponse(RESPONSE_BYTES_MAX))
    }
    if (typeof whole === 'string') return refuse(refuseUpstream('no-upstream'))
    if (sentId === call.id) return whole
    return responseUnderId(whole, call.id) ?? refuse(refuseUpstream('no-upstream'))
  }

  return {
    async forward(caller, call) {
      if (inFlight >= IN_FLIGHT_MAX) {
        meter.refused('callsInFlight', { subscription: caller.subscription.id, code: 'rate-limited' })
        access.refund(caller, { interface: 'ws', method: call.method })
        return refusalResponse(
          refuseOnConnection('callsInFlight', IN_FLIGHT_MAX, 'calls not yet answered'),
          requestId,
          call.id,
        )
      }
      inFlight += 1
      try {
        return await ask(caller, call)
      } finally {
        inFlight -= 1
      }
    },
  }
}
