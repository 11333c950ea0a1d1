import type { Admission } from '../../access/admission.ts'
import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import type { TokenRefusal } from '../../contract/errors.ts'
import type { Clock } from '../../core/clock.ts'
import { type RpcCall, writeResult } from '../../solana/json/json-rpc.ts'
import { whoami } from '../account/whoami.ts'
import type { ListenerMeter } from '../metrics.ts'
import { callerRefusal, errorResponse, overLimitRefusal, type RefusableRequest, upstreamRefusal } from '../refusal.ts'
import type { RpcItem } from '../rpc/request.ts'
import { replaceId } from '../rpc/response-id.ts'
import type { WsCalls } from './calls.ts'
import type { HeldResponses } from './held-responses.ts'
import { invalidSubscription, UPSTREAM_SUBSCRIPTIONS, upstreamSubscriptionRefusal } from './refusal.ts'
import { type PubSubKind, pubSubMethod, unsubscribedId } from './request.ts'
import type { ClientSubscriptions } from './subscriptions.ts'

export type Reply = { readonly text: string | Buffer; readonly onSent?: () => void }
export type CloseReason = TokenRefusal | 'not-assigned'
type CallWithId = RpcCall & { readonly id: string }

export type PubSubRequestHandlerDeps = {
  readonly access: Access
  readonly clock: Clock
  readonly meter: Pick<ListenerMeter, 'request' | 'refused'>
}

/** The client that is responded to. Its refusals carry the id of the request that opened the connection. */
export type RequestingClient = RefusableRequest & {
  /** As the store has it now. */
  readonly caller: Caller
  readonly calls: WsCalls
  readonly subscriptions: ClientSubscriptions
  /** Counts a request that is not charged. Beyond a rate of them in its subscription the connection is read more slowly. */
  countFree(): void
  closeRefused(reason: CloseReason): void
}

/** Responds to the requests of all clients. */
export class PubSubRequestHandler {
  readonly #deps: PubSubRequestHandlerDeps

  constructor(deps: PubSubRequestHandlerDeps) {
    this.#deps = deps
  }

  /**
   * Responds to one request; undefined where there is no response. Runs synchronously up to its first await, so that requests are charged in the order
   * of arrival.
   */
  async respond(client: RequestingClient, item: RpcItem, held: HeldResponses): Promise<Reply | undefined> {
    if ('refusal' in item) {
      client.countFree()
      return { text: item.refusal }
    }
    const { call } = item
    // Clients keep the connection alive with a `ping` notification; a node ignores other notifications too.
    if (call.id === undefined) {
      client.countFree()
      return undefined
    }
    const { access, meter } = this.#deps
    const { caller } = client
    const withId: CallWithId = { ...call, id: call.id }
    if (call.method === 'getRateLimits') {
      client.countFree()
      meter.request(call.method)
      return { text: this.#rateLimits(caller, withId) }
    }
    const method = pubSubMethod(call.method)
    if (method?.verb === 'Subscribe') return this.#subscribe(client, withId, method.kind)
    const admission = access.admit(caller, { interface: 'ws', method: call.method })
    if (!admission.ok) return this.#refused(client, admission, withId)
    meter.request(call.method)
    if (method === undefined) {
      return { text: await client.calls.forward(caller, { ...withId, charge: admission }, held) }
    }
    const id = unsubscribedId(call.paramsText)
    const isEnded = id !== undefined && client.subscriptions.unsubscribe(id)
    return { text: isEnded ? writeResult(withId.id, 'true') : invalidSubscription(withId.id) }
  }

  async #subscribe(client: RequestingClient, call: CallWithId, kind: PubSubKind): Promise<Reply> {
    const { access, meter } = this.#deps
    const { caller, subscriptions } = client
    const permit = subscriptions.reserve(caller, call.method)
    if (!permit.ok) {
      meter.refused('wsSubscriptions')
      client.countFree()
      return { text: errorResponse(permit.refusal, client, call.id) }
    }
    const admission = access.admit(caller, { interface: 'ws', method: call.method })
    if (!admission.ok) {
      permit.release()
      return this.#refused(client, admission, call)
    }
    meter.request(call.method)
    const topic = { nodeUser: caller.nodeUser, kind, params: call.paramsText }
    const { id, response, start } = await subscriptions.subscribe(topic, permit)
    const noUpstream = () => errorResponse(upstreamRefusal('no-upstream'), client, call.id)
    const refund = () => {
      access.refund(caller, { interface: 'ws', method: call.method }, admission)
      client.countFree()
    }
    switch (response.kind) {
      case 'ready':
        return { text: writeResult(call.id, String(id)), onSent: start }
      case 'refused':
        return { text: replaceId(Buffer.from(response.text), call.id) ?? noUpstream() }
      case 'over-share':
        refund()
        meter.refused(UPSTREAM_SUBSCRIPTIONS, { subscription: caller.subscription.id, code: 'rate-limited' })
        return { text: errorResponse(upstreamSubscriptionRefusal(response.limitSize, admission.cost), client, call.id) }
      case 'no-upstream':
        if (!response.isSent) refund()
        return { text: noUpstream() }
    }
  }

  #refused(client: RequestingClient, admission: Exclude<Admission, { ok: true }>, call: CallWithId): Reply {
    const { meter, clock } = this.#deps
    client.countFree()
    if ('limitName' in admission) {
      meter.refused(admission.limitName)
      return { text: errorResponse(overLimitRefusal(admission, call.method, clock.nowMs()), client, call.id) }
    }
    const { reason } = admission
    const text = errorResponse(callerRefusal('ws', admission), client, call.id)
    return { text, onSent: () => client.closeRefused(reason) }
  }

  #rateLimits(caller: Caller, { id }: CallWithId): string {
    const { access, clock } = this.#deps
    const own = whoami(access, caller, clock.nowMs()) as Readonly<Record<string, unknown>>
    const { limits, budget, rate_limits, month, open } = own
    return writeResult(id, JSON.stringify({ budget, rate_limits, month, limits, open }))
  }
}
