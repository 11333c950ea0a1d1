import type { NodeUser } from '../contract/products.ts'
import type { PinnedAddressDeps } from '../platform/net/pinned-address.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { upstreamsMetrics } from './metrics.ts'
import { type NodesOptions, sharedSpec } from './node-spec.ts'
import type { DedicatedNodeOptions, UpstreamsOptions } from './options.ts'
import { createDedicatedPools, type DedicatedPools } from './pool/dedicated-pools.ts'
import type { NodeChange } from './pool/members.ts'
import { isWsDown } from './pool/report.ts'
import { type StartedPool, startPool } from './pool/start.ts'
import type { StartProbing } from './probes/shared-probes.ts'
import { createRetryBudget } from './retry-budget.ts'
import { createSlotLength, type SlotLengthLearner } from './slot-length.ts'
import { type NodeStatus, statusOf } from './status.ts'
import type { Upstream } from './upstream.ts'

export type UpstreamsDeps = BaseDeps & {
  readonly registry: MetricsRegistry
  readonly env: Readonly<Record<string, string | undefined>>
  /** The base of relative paths in secret references. */
  readonly folder?: string | undefined
  readonly lookup?: PinnedAddressDeps['lookup']
  /** Certificates to trust instead of the system's. */
  readonly ca?: string | undefined
  /** Learns from the shared nodes; where others of the process use it too, it exists before the nodes. */
  readonly slotLength?: SlotLengthLearner | undefined
  /** Default: this thread probes the nodes itself. */
  readonly probing?: StartProbing | undefined
  /** Notified when the shared nodes are down or lag, or a dedicated node is down. */
  readonly lifecycle?: Pick<Lifecycle, 'degraded' | 'recovered'> | undefined
}

export type Upstreams = AsyncDisposable & {
  readonly shared: Upstream
  /** The dedicated nodes of a subscription where it has any; else the shared ones, or none where it may not use those. */
  of(user: NodeUser): Upstream
  usesShared(user: NodeUser): boolean
  /** Replaces the list of dedicated nodes. Unchanged nodes keep their connections. */
  setDedicated(nodes: readonly DedicatedNodeOptions[]): Promise<void>
  /**
   * Replaces the shared nodes and reads the secrets of all nodes again. Unchanged nodes keep their connections. Rejects, and changes nothing, where a
   * secret of a shared node cannot be read.
   */
  reload(options: NodesOptions): Promise<NodeChange[]>
  /** Takes the node out of rotation and moves its WebSocket subscriptions, and the gRPC streams that can be continued. False where there is no such node. */
  drain(node: string): boolean
  undrain(node: string): boolean
  status(): readonly NodeStatus[]
}

/** Starts the shared pool, its probes and its connections. Starts also when nodes are down. */
export async function startUpstreams(options: UpstreamsOptions, deps: UpstreamsDeps): Promise<Upstreams> {
  const log = deps.log.child({ part: 'upstreams' })
  let isClosed = false
  const slotLength = deps.slotLength ?? createSlotLength(deps)
  /** Read by the metrics, which are registered first. */
  const readings: { shared?: StartedPool; dedicated?: DedicatedPools } = {}
  const metrics = upstreamsMetrics(deps.registry, {
    allBehind: () => (readings.shared?.upstream.slotsBehind === undefined ? 0 : 1),
    wsDown: () => (readings.shared !== undefined && isWsDown(readings.shared.pool) ? 1 : 0),
    dedicated: () => readings.dedicated?.nodeCount ?? 0,
    dedicatedFailing: () => readings.dedicated?.status().filter(({ state }) => state === 'failing').length ?? 0,
    slotLengthSeconds: () => slotLength.ms() / 1000,
  })
  const poolDeps = { ...deps, log, metrics, budget: createRetryBudget(options.calls.retryShare), slotLength }
  const specs = await Promise.all(options.nodes.map((node) => sharedSpec(node, options, deps)))
  const shared = startPool(undefined, options, poolDeps)
  shared.setNodes(specs)
  const dedicated = createDedicatedPools(options, poolDeps)
  readings.shared = shared
  readings.dedicated = dedicated
  /** For subscriptions that may not use the shared nodes and have none of their own. */
  const none = startPool('none', options, poolDeps)

  const named = (name: string) =>
    [shared, ...dedicated.all()].flatMap((started) =>
      started.pool.nodes.filter((node) => node.name === name).map((node) => ({ node, started })),
    )

  /** Changes apply one after another. */
  let settling: Promise<unknown> = Promise.resolve()
  function serialized<T>(work: () => Promise<T>): Promise<T> {
    const result = settling.then(work)
    settling = result.catch(() => {})
    return result
  }

  const poolOf = (user: NodeUser): StartedPool =>
    dedicated.of(user.subscriptionId) ?? (user.mayUseShared ? shared : none)

  return {
    shared: shared.upstream,
    of: (user) => poolOf(user).upstream,
    usesShared: (user) => poolOf(user) === shared,
    setDedicated: (nodes) =>
      serialized(async () => {
        await dedicated.setNodes(nodes)
      }),
    reload: (next) =>
      serialized(async () => {
        const nextSpecs = await Promise.all(next.nodes.map((node) => sharedSpec(node, next, deps)))
        const changes = isClosed ? [] : shared.setNodes(nextSpecs)
        if (changes.length > 0) log.info({ changes }, 'upstreams changed')
        return [...changes, ...(await dedicated.setOptions(next))]
      }),
    drain(name) {
      const found = named(name)
      for (const { node, started } of found) {
        if (!node.isDrained) log.info({ upstream: name, subscription: started.pool.owner }, 'upstream drained')
        node.setDrained(true)
        started.upstream.ws.leave(node)
        started.upstream.grpc.leave(node)
      }
      return found.length > 0
    },
    undrain(name) {
      const found = named(name)
      for (const { node, started } of found) {
        if (node.isDrained) log.info({ upstream: name, subscription: started.pool.owner }, 'upstream back from drain')
        node.setDrained(false)
      }
      return found.length > 0
    },
    status: () => [
      ...shared.pool.nodes.map((node) => statusOf(node, undefined, shared.upstream)),
      ...dedicated.status(),
    ],
    async [Symbol.asyncDispose]() {
      isClosed = true
      for (const pools of [shared, dedicated, none]) pools[Symbol.dispose]()
      await settling
    },
  }
}
