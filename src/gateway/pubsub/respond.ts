import type { Admission } from '../../access/admission.ts'
import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import type { TokenRefusal } from '../../contract/errors.ts'
import type { Clock } from '../../core/clock.ts'
import { type RpcCall, writeResult } from '../../solana/json/json-rpc.ts'
import { whoami } from '../account/whoami.ts'
import type { ListenerMeter } from '../metrics.ts'
import { errorResponse, type RefusableRequest, refuseCaller, refuseOverLimit, refuseUpstream } from '../refusal.ts'
import type { RpcItem } from '../rpc/request.ts'
import { replaceId } from '../rpc/response-id.ts'
import type { WsCalls } from './calls.ts'
import type { HeldResponses } from './held-responses.ts'
import { invalidSubscription } from './refusal.ts'
import { type PubSubKind, pubSubMethod, unsubscribedId } from './request.ts'
import type { ClientSubscriptions } from './subscriptions.ts'

export type Reply = { readonly text: string | Buffer; readonly onSent?: () => void }
export type CloseReason = TokenRefusal | 'not-assigned'
type CallWithId = RpcCall & { readonly id: string }

/**
 * Responds to one request of a client; undefined where there is no response. Runs synchronously up to its first await, so that requests are
 * charged in the order of arrival.
 */
export type Respond = (item: RpcItem, held: HeldResponses) => Promise<Reply | undefined>

export type RespondDeps = {
  readonly access: Access
  readonly clock: Clock
  readonly meter: Pick<ListenerMeter, 'request' | 'refused'>
  /** The request that opened the connection. */
  readonly request: RefusableRequest
  readonly calls: WsCalls
  readonly subscriptions: ClientSubscriptions
  /** The client as the store has it now. */
  caller(): Caller
  /** Whether the client may send a message that is not charged; the connection closes where it may not. */
  takeFree(): boolean
  closeRefused(reason: CloseReason): void
}

export function createRespond(deps: RespondDeps): Respond {
  const { access, clock, meter, request, calls, subscriptions, takeFree } = deps

  async function subscribe(caller: Caller, call: CallWithId, kind: PubSubKind): Promise<Reply> {
    const permit = subscriptions.reserve(caller, call.method)
    if (!permit.ok) {
      meter.refused('wsSubscriptions')
      return { text: errorResponse(permit.refusal, request, call.id) }
    }
    const admission = access.admit(caller, { interface: 'ws', method: call.method })
    if (!admission.ok) {
      permit.release()
      return refused(admission, call)
    }
    meter.request(call.method)
    const topic = { nodeUser: caller.nodeUser, kind, params: call.paramsText }
    const { id, response, start } = await subscriptions.subscribe(topic, permit)
    switch (response.kind) {
      case 'ready':
        return { text: writeResult(call.id, String(id)), onSent: start }
      case 'refused':
        return { text: replaceId(Buffer.from(response.text), call.id) ?? noUpstream(call) }
      case 'no-upstream':
        if (!response.isSent) access.refund(caller, { interface: 'ws', method: call.method }, admission)
        return { text: noUpstream(call) }
    }
  }

  function refused(admission: Exclude<Admission, { ok: true }>, call: CallWithId): Reply {
    if ('limitName' in admission) {
      meter.refused(admission.limitName)
      return { text: errorResponse(refuseOverLimit(admission, call.method, clock.nowMs()), request, call.id) }
    }
    const { reason } = admission
    const text = errorResponse(refuseCaller('ws', admission), request, call.id)
    return { text, onSent: () => deps.closeRefused(reason) }
  }

  function noUpstream({ id }: CallWithId): string {
    return errorResponse(refuseUpstream('no-upstream'), request, id)
  }

  function rateLimits(caller: Caller, { id }: CallWithId): string {
    const own = whoami(access, caller, clock.nowMs()) as Readonly<Record<string, unknown>>
    const { limits, budget, rate_limits, month, open } = own
    return writeResult(id, JSON.stringify({ budget, rate_limits, month, limits, open }))
  }

  return async (item, held) => {
    if ('refusal' in item) return takeFree() ? { text: item.refusal } : undefined
    const { call } = item
    // Clients keep the connection alive with a `ping` notification; a node ignores other notifications too.
    if (call.id === undefined) return void takeFree()
    const caller = deps.caller()
    const withId: CallWithId = { ...call, id: call.id }
    if (call.method === 'getRateLimits') {
      if (!takeFree()) return undefined
      meter.request(call.method)
      return { text: rateLimits(caller, withId) }
    }
    const method = pubSubMethod(call.method)
    if (method?.verb === 'Subscribe') return subscribe(caller, withId, method.kind)
    const admission = access.admit(caller, { interface: 'ws', method: call.method })
    if (!admission.ok) return refused(admission, withId)
    meter.request(call.method)
    if (method === undefined) return { text: await calls.forward(caller, { ...withId, charged: admission }, held) }
    const id = unsubscribedId(call.paramsText)
    const isEnded = id !== undefined && subscriptions.unsubscribe(id)
    return { text: isEnded ? writeResult(withId.id, 'true') : invalidSubscription(withId.id) }
  }
}
