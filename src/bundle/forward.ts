import { rpcMethod } from '../contract/rpc-methods.ts'
import type { Clock } from '../core/clock.ts'
import { type ClientView, createClientView } from '../upstreams/pool.ts'
import type { Upstreams } from '../upstreams/service.ts'
import type { DoorMeter } from './metrics.ts'
import type { UpstreamAnswer, UpstreamCall } from './rpc.ts'

/** Sends calls to the nodes of the subscription, and remembers for each connection the newest slot it has seen. */
export function createForward(upstreams: Pick<Upstreams, 'of'>): UpstreamCall {
  const views = new WeakMap<object, ClientView>()

  function viewOf(connection: object): ClientView {
    const known = views.get(connection)
    if (known !== undefined) return known
    const view = createClientView()
    views.set(connection, view)
    return view
  }

  return async ({ body, methods, subscriptionId, connection }): Promise<UpstreamAnswer> => {
    const known = methods.map(rpcMethod)
    const upstream = upstreams.of(subscriptionId)
    const outcome = await upstream.ask({
      body,
      // A batch may be asked again of another node only when every call in it may.
      kind: known.every(({ kind }) => kind === 'read') ? 'read' : 'write',
      isHeavy: known.some(({ heavy }) => heavy === true),
      method: methods.length === 1 ? methods[0] : undefined,
      view: viewOf(connection),
    })
    switch (outcome.kind) {
      case 'answered':
        return {
          kind: 'answered',
          body: isHealth(methods) ? tellBehind(outcome.body, upstream.slotsBehind) : outcome.body,
          rest: outcome.rest,
        }
      case 'no-upstream':
      case 'failed-not-sent':
        return { kind: 'not-forwarded' }
      case 'timeout':
        return { kind: 'timeout' }
      case 'failed-maybe-sent':
        return { kind: 'failed' }
    }
  }
}

const isHealth = (methods: readonly string[]) => methods.length === 1 && methods[0] === 'getHealth'

/** A node may not know that it is behind the others; when all that serve are, its health is not ok, in a node's own words. */
function tellBehind(body: Buffer, slotsBehind: number | undefined): Buffer {
  if (slotsBehind === undefined) return body
  const error = `"error":{"code":-32005,"message":"Node is behind by ${slotsBehind} slots","data":{"numSlotsBehind":${slotsBehind}}}`
  return Buffer.from(body.toString().replace(/"result"\s*:\s*"ok"/, error))
}

/** The same, with the time each call took. */
export function measured(call: UpstreamCall, clock: Clock, meter: Pick<DoorMeter, 'tookMs'>): UpstreamCall {
  return async (request) => {
    const beganMs = clock.monotonicMs()
    const answer = await call(request)
    meter.tookMs(clock.monotonicMs() - beganMs)
    return answer
  }
}
