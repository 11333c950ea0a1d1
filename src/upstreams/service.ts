import type { NodeUser } from '../contract/products.ts'
import { messageOf, ServiceError } from '../core/error.ts'
import type { PinnedAddressDeps } from '../platform/net/pinned-address.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { upstreamsMetrics } from './metrics.ts'
import type { NodeSpec } from './node.ts'
import { dedicatedSpec, type NodesOptions, sharedSpec } from './node-spec.ts'
import type { DedicatedNodeOptions, UpstreamsOptions } from './options.ts'
import type { NodeChange } from './pool/members.ts'
import { type StartedPool, startPool } from './pool/start.ts'
import type { StartProbing } from './probes/shared-probes.ts'
import { createRetryBudget } from './retry-budget.ts'
import { createSlotLength, type SlotLengthLearner } from './slot-length.ts'
import { type NodeStatus, statusOf, unusableStatus } from './status.ts'
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
  /** The dedicated nodes of a subscription where it has any; else the shared ones, or none where it may not use those. Undefined: the shared ones. */
  of(user: NodeUser | undefined): Upstream
  /** Replaces the list of dedicated nodes. Unchanged nodes keep their connections. */
  setDedicated(nodes: readonly DedicatedNodeOptions[]): Promise<void>
  /**
   * Replaces the shared nodes and reads the secrets of all nodes again. Unchanged nodes keep their connections. Rejects, and changes nothing, where a
   * secret of a shared node cannot be read.
   */
  reload(options: NodesOptions): Promise<NodeChange[]>
  /** Takes the node out of rotation and moves its WebSocket subscriptions. False where there is no such node. */
  drain(node: string): boolean
  undrain(node: string): boolean
  status(): readonly NodeStatus[]
}

/** The dedicated nodes of one subscription, and those of them that cannot be used. */
type DedicatedPool = StartedPool & { unusable: readonly { readonly name: string; readonly reason: string }[] }

/** Failing dedicated nodes named in a report. */
const NAMED_MAX = 5

/** Starts the shared pool, its probes and its connections. Starts also when nodes are down. */
export async function startUpstreams(options: UpstreamsOptions, deps: UpstreamsDeps): Promise<Upstreams> {
  const log = deps.log.child({ part: 'upstreams' })
  let nodesOptions: NodesOptions = options
  const dedicated = new Map<string, DedicatedPool>()
  let dedicatedNodes: readonly DedicatedNodeOptions[] = []
  /** Pools of former owners whose calls in flight have not ended. */
  const retired = new Set<StartedPool>()
  let isClosed = false

  const slotLength = deps.slotLength ?? createSlotLength(deps)
  /** Read by the metrics, which are registered first. */
  const readings: { shared?: StartedPool } = {}
  const dedicatedStates = () => [...dedicated].flatMap(([owner, pool]) => statusesOf(owner, pool))
  const metrics = upstreamsMetrics(deps.registry, {
    allBehind: () => (readings.shared?.upstream.slotsBehind === undefined ? 0 : 1),
    dedicated: () =>
      dedicated.values().reduce((sum, { pool, unusable }) => sum + pool.nodes.length + unusable.length, 0),
    dedicatedFailing: () => dedicatedStates().filter(({ state }) => state === 'failing').length,
    slotLengthSeconds: () => slotLength.ms() / 1000,
  })
  const poolDeps = { ...deps, log, metrics, budget: createRetryBudget(options.calls.retryShare), slotLength }
  const specs = await Promise.all(options.nodes.map((node) => sharedSpec(node, options, deps)))
  const shared = startPool(undefined, options, poolDeps)
  shared.setNodes(specs)
  readings.shared = shared
  /** For subscriptions that may not use the shared nodes and have none of their own. */
  const none = startPool('none', options, poolDeps)

  const allPools = () => [shared, ...dedicated.values()]
  const named = (name: string) =>
    allPools().flatMap((started) =>
      started.pool.nodes.filter((node) => node.name === name).map((node) => ({ node, started })),
    )

  function statusesOf(owner: string, { pool, upstream, unusable }: DedicatedPool): NodeStatus[] {
    const used = pool.nodes.map((node) => statusOf(node, owner, upstream))
    return [...used, ...unusable.map((node) => unusableStatus(node, owner))]
  }

  function reportDedicated(): void {
    const failing = dedicatedStates().filter(({ state }) => state === 'failing')
    if (failing.length === 0) return deps.lifecycle?.recovered('dedicated nodes')
    const names = failing.slice(0, NAMED_MAX).map(({ name }) => name)
    const more = failing.length > NAMED_MAX ? ` and ${failing.length - NAMED_MAX} more` : ''
    deps.lifecycle?.degraded('dedicated nodes', `failing: ${names.join(', ')}${more}`)
  }

  /** A node that cannot be set up does not affect other nodes and customers; the next change or reload tries again. */
  async function setOwner(owner: string, owned: readonly DedicatedNodeOptions[]): Promise<NodeChange[]> {
    const usable: NodeSpec[] = []
    const unusable: DedicatedPool['unusable'][number][] = []
    const note = (name: string, error: unknown) => {
      log.error({ err: error, subscription: owner, upstream: name }, 'dedicated upstream cannot be used')
      unusable.push({ name, reason: messageOf(error) })
    }
    for (const node of owned) {
      try {
        usable.push(await dedicatedSpec(node, nodesOptions, deps))
      } catch (error) {
        note(node.name, error)
      }
    }
    if (isClosed) return []
    const pool = dedicated.get(owner) ?? {
      // Its nodes may be of another chain.
      ...startPool(owner, options, {
        ...poolDeps,
        slotLength: createSlotLength({ clock: deps.clock, fallback: slotLength }),
        onNodeChange: reportDedicated,
      }),
      unusable: [],
    }
    dedicated.set(owner, pool)
    const changes = setUsable(pool, usable, note)
    pool.unusable = unusable
    if (changes.length > 0) {
      log.info({ subscription: owner, upstreams: usable.map(({ name }) => name) }, 'dedicated upstreams in use')
    }
    return changes
  }

  /** A spec that the node itself refuses, for a credential that is no header value, leaves out this node only. */
  function setUsable(pool: StartedPool, specs: NodeSpec[], note: (name: string, error: unknown) => void): NodeChange[] {
    for (;;) {
      try {
        return pool.setNodes(specs)
      } catch (error) {
        const name = error instanceof ServiceError ? error.fields['node'] : undefined
        const bad = specs.find((spec) => spec.name === name)
        if (bad === undefined) throw error
        specs.splice(specs.indexOf(bad), 1)
        note(bad.name, error)
      }
    }
  }

  async function applyDedicated(): Promise<NodeChange[]> {
    const changes: NodeChange[] = []
    const owners = Map.groupBy(dedicatedNodes, ({ subscriptionId }) => subscriptionId)
    for (const [owner, owned] of owners) changes.push(...(await setOwner(owner, owned)))
    for (const [owner, pool] of [...dedicated]) {
      if (owners.has(owner)) continue
      dedicated.delete(owner)
      retired.add(pool)
      pool.retire(() => retired.delete(pool))
    }
    reportDedicated()
    return changes
  }

  /** Changes apply one after another. */
  let settling: Promise<unknown> = Promise.resolve()
  function serialized<T>(work: () => Promise<T>): Promise<T> {
    const result = settling.then(work)
    settling = result.catch(() => {})
    return result
  }

  return {
    of(user) {
      if (user === undefined) return shared.upstream
      return (dedicated.get(user.subscriptionId) ?? (user.mayUseShared ? shared : none)).upstream
    },
    setDedicated: (nodes) =>
      serialized(async () => {
        dedicatedNodes = nodes
        await applyDedicated()
      }),
    reload: (next) =>
      serialized(async () => {
        const nextSpecs = await Promise.all(next.nodes.map((node) => sharedSpec(node, next, deps)))
        const changes = isClosed ? [] : shared.setNodes(nextSpecs)
        nodesOptions = next
        if (changes.length > 0) log.info({ changes }, 'upstreams changed')
        return [...changes, ...(await applyDedicated())]
      }),
    drain(name) {
      const found = named(name)
      for (const { node, started: pool } of found) {
        if (!node.isDrained) log.info({ upstream: name, subscription: pool.pool.owner }, 'upstream drained')
        node.setDrained(true)
        pool.upstream.ws.leave(node)
      }
      return found.length > 0
    },
    undrain(name) {
      const found = named(name)
      for (const { node, started: pool } of found) {
        if (node.isDrained) log.info({ upstream: name, subscription: pool.pool.owner }, 'upstream back from drain')
        node.setDrained(false)
      }
      return found.length > 0
    },
    status: () => [
      ...shared.pool.nodes.map((node) => statusOf(node, undefined, shared.upstream)),
      ...dedicatedStates(),
    ],
    async [Symbol.asyncDispose]() {
      isClosed = true
      for (const pool of [...allPools(), none, ...retired]) pool[Symbol.dispose]()
      await settling
    },
  }
}
