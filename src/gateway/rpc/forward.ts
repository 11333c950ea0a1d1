import { rpcMethod } from '../../contract/rpc-methods.ts'
import type { Clock } from '../../core/clock.ts'
import type { CallOutcome } from '../../upstreams/http-call.ts'
import { type ClientView, createClientView } from '../../upstreams/pool.ts'
import type { Upstream, Upstreams } from '../../upstreams/service.ts'
import type { ListenerMeter } from '../metrics.ts'
import type { Forward, UpstreamResponse } from './rpc.ts'

/** Sends calls to the nodes of the subscription, and remembers for each connection the newest slot it has seen. */
export function createForward(upstreams: Pick<Upstreams, 'of'>): Forward {
  const views = new WeakMap<object, ClientView>()

  function viewOf(connection: object): ClientView {
    const known = views.get(connection)
    if (known !== undefined) return known
    const view = createClientView()
    views.set(connection, view)
    return view
  }

  return ({ body, bodyBytes, methods, subscriptionId, connection }, done, nowMs) => {
    const upstream = upstreams.of(subscriptionId)
    // A batch may be asked again of another node only when every call in it may.
    let kind: 'read' | 'write' = 'read'
    let isHeavy = false
    for (const method of methods) {
      const known = rpcMethod(method)
      if (known.kind === 'write') kind = 'write'
      if (known.heavy === true) isHeavy = true
    }
    const method = methods.length === 1 ? methods[0] : undefined
    upstream.call({ body, bodyBytes, kind, isHeavy, method, view: viewOf(connection), nowMs }, (outcome) =>
      done(responseOf(outcome, method, upstream)),
    )
  }
}

function responseOf(outcome: CallOutcome, method: string | undefined, upstream: Upstream): UpstreamResponse {
  switch (outcome.kind) {
    case 'responded':
      return {
        kind: 'responded',
        body: method === 'getHealth' ? reportBehind(outcome.body, upstream.slotsBehind) : outcome.body,
        rest: outcome.rest,
      }
    case 'no-upstream':
    case 'failed-not-sent':
      return { kind: 'failed', isForwarded: false }
    case 'timeout':
      return { kind: 'timeout', isForwarded: outcome.isSent }
    case 'failed-maybe-sent':
      return { kind: 'failed', isForwarded: true }
  }
}

/** A node may not know that it is behind the others; when all that serve are, its health is not ok, in a node's own words. */
function reportBehind(body: Buffer, slotsBehind: number | undefined): Buffer {
  if (slotsBehind === undefined) return body
  const error = `"error":{"code":-32005,"message":"Node is behind by ${slotsBehind} slots","data":{"numSlotsBehind":${slotsBehind}}}`
  return Buffer.from(body.toString().replace(/"result"\s*:\s*"ok"/, error))
}

/** The same, with the time each call took. */
export function measured(forward: Forward, clock: Clock, meter: Pick<ListenerMeter, 'tookMs'>): Forward {
  return (request, done) => {
    const beganMs = clock.monotonicMs()
    const onResponse = (response: UpstreamResponse) => {
      meter.tookMs(clock.monotonicMs() - beganMs)
      done(response)
    }
    forward(request, onResponse, beganMs)
  }
}
