import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { resolveSecret } from '../platform/config/secret-ref.ts'
import type { PinnedAddressDeps } from '../platform/net/pinned-address.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { createGrpcLinks, type GrpcLinks } from './grpc-link.ts'
import { forwardCall, type UpstreamRequest, type UpstreamResponse } from './http-call.ts'
import { DEDICATED, type UpstreamsMetrics, upstreamsMetrics } from './metrics.ts'
import { createNode, type NodeSpec } from './node.ts'
import type { DedicatedNodeOptions, UpstreamsOptions } from './options.ts'
import { createPool, type Pool } from './pool.ts'
import { startProbes } from './probe.ts'
import { createRetryBudget } from './retry-budget.ts'
import { type NodeStatus, statusOf } from './status.ts'
import { createWsLinks, type WsLinks } from './ws-links.ts'

export type UpstreamsDeps = {
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly registry: MetricsRegistry
  readonly env: Readonly<Record<string, string | undefined>>
  /** The base of relative paths in secret references. */
  readonly folder?: string | undefined
  readonly lookup?: PinnedAddressDeps['lookup']
  /** Certificates to trust instead of the system's. */
  readonly ca?: string | undefined
  /** Notified when the shared nodes are down or lag. */
  readonly lifecycle?: Pick<Lifecycle, 'degraded' | 'recovered'> | undefined
}

/** The nodes of one subscription, or those shared by all without dedicated nodes. */
export type Upstream = {
  /** Forwards one JSON-RPC POST. `done` is called exactly once, never before this returns. */
  forward(request: UpstreamRequest, done: (response: UpstreamResponse) => void): { abort(): void }
  forwardAsync(request: UpstreamRequest): Promise<UpstreamResponse>
  readonly ws: WsLinks
  readonly grpc: GrpcLinks
  readonly bestSlot: number
  /** The smallest lag while every available node lags; undefined otherwise. */
  readonly slotsBehind: number | undefined
  /** Whether a node is available for a call now. */
  readonly isAvailable: boolean
}

export type Upstreams = AsyncDisposable & {
  /** The dedicated nodes of a subscription where it has any; else the shared ones. */
  of(subscriptionId: string | undefined): Upstream
  /** Replaces the list of dedicated nodes. Unchanged nodes keep their connections. */
  setDedicated(nodes: readonly DedicatedNodeOptions[]): Promise<void>
  /** Takes the node out of rotation and moves its WebSocket subscriptions. False where there is no such node. */
  drain(node: string): boolean
  undrain(node: string): boolean
  status(): readonly NodeStatus[]
}

/** Starts the shared pool, its probes and its connections. Starts also when nodes are down. */
export async function startUpstreams(options: UpstreamsOptions, deps: UpstreamsDeps): Promise<Upstreams> {
  const log = deps.log.child({ part: 'upstreams' })
  /** Read by the metrics, which are registered first. */
  const readings: { shared?: StartedPool } = {}
  const metrics = upstreamsMetrics(
    deps.registry,
    options.nodes.map(({ name }) => name),
    () => (readings.shared?.upstream.slotsBehind === undefined ? 0 : 1),
  )
  const started: StartDeps = { ...deps, log, metrics, budget: createRetryBudget(options.calls.retryShare) }
  const specs = await Promise.all(options.nodes.map((node) => sharedSpec(node, options, deps)))
  const shared = startPool(specs, undefined, options, started)
  readings.shared = shared
  let dedicated = new Map<string, StartedPool & { readonly key: string }>()
  let isClosed = false

  const allPools = () => [shared, ...dedicated.values()]
  const named = (name: string) =>
    allPools().flatMap((started) =>
      started.pool.nodes.filter((node) => node.name === name).map((node) => ({ node, started })),
    )

  /** A node that cannot be set up leaves its owner without nodes and does not affect other customers; the next change tries again. */
  async function startDedicated(owner: string, owned: readonly DedicatedNodeOptions[]): Promise<StartedPool> {
    try {
      const ownSpecs = await Promise.all(owned.map((node) => dedicatedSpec(node, options, deps)))
      const pool = startPool(ownSpecs, owner, options, started)
      log.info({ subscription: owner, upstreams: owned.map(({ name }) => name) }, 'dedicated upstreams in use')
      return pool
    } catch (error) {
      log.error({ err: error, subscription: owner }, 'dedicated upstreams cannot be used')
      return startPool([], owner, options, started)
    }
  }

  async function setDedicated(nodes: readonly DedicatedNodeOptions[]): Promise<void> {
    const owners = Map.groupBy(nodes, ({ subscriptionId }) => subscriptionId)
    const next: typeof dedicated = new Map()
    for (const [owner, owned] of owners) {
      const key = JSON.stringify(owned)
      const before = dedicated.get(owner)
      if (before?.key === key) {
        next.set(owner, before)
        continue
      }
      const pool = await startDedicated(owner, owned)
      if (isClosed) return pool[Symbol.dispose]()
      next.set(owner, { ...pool, key: pool.pool.nodes.length === 0 ? '' : key })
    }
    const replaced = [...dedicated].filter(([owner, pool]) => next.get(owner) !== pool)
    dedicated = next
    for (const [, pool] of replaced) pool[Symbol.dispose]()
  }

  return {
    of: (subscriptionId) => (dedicated.get(subscriptionId ?? '') ?? shared).upstream,
    setDedicated,
    drain(name) {
      const found = named(name)
      for (const { node, started: pool } of found) {
        if (!node.isDrained) log.info({ upstream: name, subscription: pool.pool.owner }, 'upstream drained')
        node.isDrained = true
        node.onChange()
        pool.upstream.ws.leave(node)
      }
      return found.length > 0
    },
    undrain(name) {
      const found = named(name)
      for (const { node, started: pool } of found) {
        if (node.isDrained) log.info({ upstream: name, subscription: pool.pool.owner }, 'upstream back from drain')
        node.isDrained = false
        node.onChange()
      }
      return found.length > 0
    },
    status: () =>
      allPools().flatMap(({ pool, upstream }) => pool.nodes.map((node) => statusOf(node, pool.owner, upstream))),
    async [Symbol.asyncDispose]() {
      isClosed = true
      for (const pool of allPools()) pool[Symbol.dispose]()
      await Promise.resolve()
    },
  }
}

type StartDeps = UpstreamsDeps & {
  readonly metrics: UpstreamsMetrics
  readonly budget: ReturnType<typeof createRetryBudget>
}

type StartedPool = Disposable & { readonly pool: Pool; readonly upstream: Upstream }

function startPool(
  specs: readonly NodeSpec[],
  owner: string | undefined,
  options: UpstreamsOptions,
  deps: StartDeps,
): StartedPool {
  using opening = new DisposableStack()
  const { metrics, clock } = deps
  // Log lines about dedicated nodes carry their subscription.
  const log = owner === undefined ? deps.log : deps.log.child({ subscription: owner })
  const nodes = specs.map((spec) => opening.use(createNode(spec, options, deps)))
  const pool = createPool(nodes, owner, { log, onAssessed: reportMetrics })
  for (const node of nodes) {
    let wasFailing = false
    node.onChange = () => {
      const isFailing = node.breaker.state !== 'closed'
      if (isFailing !== wasFailing) {
        if (isFailing) log.warn({ upstream: node.name, reason: node.lastFailure }, 'upstream is failing')
        else log.info({ upstream: node.name }, 'upstream works again')
      }
      wasFailing = isFailing
      reportMetrics()
    }
    opening.use(startProbes(node, options.health, { ...deps, onSlot: pool.assess }))
  }
  const ws = opening.use(createWsLinks(pool, options, deps))
  const grpc = opening.use(createGrpcLinks(pool, options.connections, deps))
  reportMetrics()

  function reportMetrics(): void {
    for (const node of nodes) {
      const { health } = metrics.of(node.label)
      health?.slot.set(node.health.slot)
      health?.lag.set(node.health.lagSlots)
      health?.state(node.state().state)
    }
    if (owner === undefined && nodes.length > 0) reportLifecycle()
  }

  function reportLifecycle(): void {
    const canServe = nodes.some(({ isDrained, breaker }) => !isDrained && breaker.state === 'closed')
    if (!canServe) deps.lifecycle?.degraded('upstreams', 'no node can take calls')
    else if (pool.slotsBehind !== undefined) deps.lifecycle?.degraded('upstreams', 'all available nodes lag')
    else deps.lifecycle?.recovered('upstreams')
  }

  const forward: Upstream['forward'] = (request, done) =>
    forwardCall(pool, request, options.calls, { clock, metrics, budget: deps.budget, done })
  const opened = opening.move()
  return {
    pool,
    upstream: {
      forward,
      forwardAsync: (request) => new Promise((resolve) => void forward(request, resolve)),
      ws,
      grpc,
      get bestSlot() {
        return pool.bestSlot
      },
      get slotsBehind() {
        return pool.slotsBehind
      },
      get isAvailable() {
        return nodes.some(({ candidates }) => candidates.rpc.isAvailable)
      },
    },
    [Symbol.dispose]: () => opened.dispose(),
  }
}

/** A node of the configuration, with its credential. */
export async function sharedSpec(
  node: UpstreamsOptions['nodes'][number],
  options: UpstreamsOptions,
  deps: Pick<UpstreamsDeps, 'env' | 'folder'>,
): Promise<NodeSpec> {
  return {
    ...node,
    label: node.name,
    rpc: node.rpc,
    ws: node.ws,
    grpc: node.grpc,
    allowPrivate: node.allowPrivate ?? options.allowPrivate,
    credential: node.credential === undefined ? undefined : await resolveSecret(node.credential, sourcesOf(deps)),
  }
}

/** The same for a dedicated node. */
export async function dedicatedSpec(
  { name, rpc, ws, grpc, credential }: Omit<DedicatedNodeOptions, 'subscriptionId'>,
  options: UpstreamsOptions,
  deps: Pick<UpstreamsDeps, 'env' | 'folder'>,
): Promise<NodeSpec> {
  return {
    name,
    label: DEDICATED,
    rpc: rpc === '' ? undefined : rpc,
    ws: ws === '' ? undefined : ws,
    grpc: grpc === '' ? undefined : grpc,
    weight: 1,
    allowPrivate: options.allowPrivate,
    credentialHeader: options.dedicatedCredentialHeader,
    credential: credential === null ? undefined : await resolveSecret(credential, sourcesOf(deps)),
  }
}

function sourcesOf({ env, folder }: Pick<UpstreamsDeps, 'env' | 'folder'>) {
  return folder === undefined ? { env } : { env, folder }
}
