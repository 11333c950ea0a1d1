import type { NodeUser } from '../../contract/products.ts'
import { rpcMethod } from '../../contract/rpc-methods.ts'
import type { Clock } from '../../core/clock.ts'
import type { UpstreamRequest } from '../../upstreams/http-call.ts'
import { type ClientView, createClientView } from '../../upstreams/pool/pool.ts'
import type { UpstreamResponse } from '../../upstreams/response.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import type { ListenerMeter } from '../metrics.ts'
import { NODE_CONNECTIONS } from '../refusal.ts'

export type ForwardRequest = {
  readonly body: Buffer | string
  /** Length of the body in bytes, where the caller knows it. */
  readonly bodyBytes?: number | undefined
  readonly methods: readonly string[]
  /** Params and id of a call that is not in a batch, as text. */
  readonly single?: { readonly params: string | undefined; readonly id: string | undefined } | undefined
  readonly expects?: UpstreamRequest['expects']
  readonly nodeUser: NodeUser
  /** The client's connection: the slot it sees never goes back. */
  readonly connection: object
}

/**
 * Forwards one body to a node of the subscription. `done` is called exactly once; before this returns only where the response is
 * cached. `nowMs` is the monotonic time, where the caller has just read it.
 */
export type Forward = (request: ForwardRequest, done: (response: UpstreamResponse) => void, nowMs?: number) => void

/** Forwards to the nodes of the subscription, and keeps for each connection the newest slot it has seen. */
export function createForward(upstreams: Pick<Upstreams, 'of'>): Forward {
  const views = new WeakMap<object, ClientView>()

  function viewOf(connection: object): ClientView {
    const known = views.get(connection)
    if (known !== undefined) return known
    const view = createClientView()
    views.set(connection, view)
    return view
  }

  return ({ body, bodyBytes, methods, expects, nodeUser, connection }, done, nowMs) => {
    const upstream = upstreams.of(nodeUser)
    // A batch may be retried on another node only when every call in it may.
    let kind: 'read' | 'write' = 'read'
    let isHeavy = false
    for (const method of methods) {
      const known = rpcMethod(method)
      if (known.kind === 'write') kind = 'write'
      if (known.heavy === true) isHeavy = true
    }
    const method = methods.length === 1 ? methods[0] : undefined
    const onResponse = method === 'getHealth' ? reportBehind(upstream, done) : done
    const { subscriptionId: subscription } = nodeUser
    const view = viewOf(connection)
    upstream.forward({ body, bodyBytes, kind, isHeavy, expects, method, subscription, view, nowMs }, onResponse)
  }
}

/** A node may not know that it is behind the others. When all nodes in use are, getHealth returns the error a node returns for it. */
function reportBehind(upstream: Upstream, done: (response: UpstreamResponse) => void): typeof done {
  return (response) => {
    const { slotsBehind } = upstream
    if (slotsBehind === undefined || response.kind !== 'responded') return done(response)
    const error = `"error":{"code":-32005,"message":"Node is behind by ${slotsBehind} slots","data":{"numSlotsBehind":${slotsBehind}}}`
    const text = response.body.toString().replace(/"result"\s*:\s*"ok"/, error)
    done({ ...response, body: Buffer.from(text) })
  }
}

/** Records how long each call takes, and which were refused for their share of the connections to a node. */
export function measureForward(
  forward: Forward,
  clock: Clock,
  meter: Pick<ListenerMeter, 'tookMs' | 'refused'>,
): Forward {
  return (request, done) => {
    const beganMs = clock.monotonicMs()
    const onResponse = (response: UpstreamResponse) => {
      meter.tookMs(clock.monotonicMs() - beganMs)
      if (response.kind === 'over-share') {
        meter.refused(NODE_CONNECTIONS, { subscription: request.nodeUser.subscriptionId, code: 'rate-limited' })
      }
      done(response)
    }
    forward(request, onResponse, beganMs)
  }
}
