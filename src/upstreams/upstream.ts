import type { Clock } from '../core/clock.ts'
import type { GrpcLinks } from './grpc-link.ts'
import { forwardCall, forwardToNode, type UpstreamRequest } from './http-call.ts'
import type { UpstreamsMetrics } from './metrics.ts'
import type { UpstreamNode } from './node.ts'
import type { CallOptions } from './options.ts'
import type { Pool } from './pool/pool.ts'
import type { UpstreamResponse } from './response.ts'
import type { RetryBudget } from './retry-budget.ts'
import type { SlotLength } from './slot-length.ts'
import type { WsLinks } from './ws/links.ts'

/** The nodes of one subscription, or those shared by all without dedicated nodes. */
export type Upstream = {
  /** Forwards one JSON-RPC POST. `done` is called exactly once, never before this returns. */
  forward(request: UpstreamRequest, done: (response: UpstreamResponse) => void): { abort(): void }
  forwardAsync(request: UpstreamRequest): Promise<UpstreamResponse>
  /** Every node with JSON-RPC that the operator has not drained, to be called one by one: for what one node may have and the others not. */
  each(): readonly SingleNode[]
  readonly ws: WsLinks
  readonly grpc: GrpcLinks
  readonly bestSlot: number
  /** The length of a slot on the chain of these nodes. */
  readonly slotLength: SlotLength
  /** The smallest lag while every available node lags; undefined otherwise. */
  readonly slotsBehind: number | undefined
  /** Whether a node is available for a call now. */
  readonly isAvailable: boolean
}

/** One node of an upstream. A call to it is made whatever its state, and is not retried on another node. */
export type SingleNode = { readonly name: string } & Pick<Upstream, 'forwardAsync'>

export type UpstreamDeps = Pick<Upstream, 'ws' | 'grpc' | 'slotLength'> & {
  readonly clock: Clock
  readonly metrics: UpstreamsMetrics
  readonly budget: RetryBudget
}

/** What the services use of a pool. */
export function createUpstream(pool: Pool, options: CallOptions, deps: UpstreamDeps): Upstream {
  const { ws, grpc, slotLength, clock, metrics, budget } = deps
  const calling = { clock, metrics, budget }
  const forward: Upstream['forward'] = (request, done) => forwardCall(pool, request, options, { ...calling, done })
  const singleNode = (node: UpstreamNode): SingleNode => ({
    name: node.name,
    forwardAsync: (request) =>
      new Promise((resolve) => forwardToNode(pool, node, request, options, { ...calling, done: resolve })),
  })
  return {
    forward,
    forwardAsync: (request) => new Promise((resolve) => void forward(request, resolve)),
    each: () => pool.nodes.filter(({ http, isDrained }) => http !== undefined && !isDrained).map(singleNode),
    ws,
    grpc,
    slotLength,
    get bestSlot() {
      return pool.bestSlot
    },
    get slotsBehind() {
      return pool.slotsBehind
    },
    get isAvailable() {
      return pool.nodes.some(({ candidates }) => candidates.rpc.isAvailable)
    },
  }
}
