import { rpcMethod } from '../contract/rpc-methods.ts'
import { type ClientView, createClientView } from '../upstreams/pool.ts'
import type { Upstreams } from '../upstreams/service.ts'
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
    const outcome = await upstreams.of(subscriptionId).ask({
      body,
      // A batch may be asked again of another node only when every call in it may.
      kind: known.every(({ kind }) => kind === 'read') ? 'read' : 'write',
      isHeavy: known.some(({ heavy }) => heavy === true),
      method: methods.length === 1 ? methods[0] : undefined,
      view: viewOf(connection),
    })
    switch (outcome.kind) {
      case 'answered':
        return { kind: 'answered', body: outcome.body, rest: outcome.rest }
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
