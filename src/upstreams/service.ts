import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { resolveSecret } from '../platform/config/secret-ref.ts'
import type { PinnedAddressDeps } from '../platform/net/pinned-address.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { createGrpcLinks, type GrpcLinks } from './grpc-link.ts'
import { type CallOutcome, forwardCall, type UpstreamCall } from './http-call.ts'
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
  /** Where relative paths of secret references begin. */
  readonly folder?: string | undefined
  readonly lookup?: PinnedAddressDeps['lookup']
  /** Certificates to trust instead of the system's. */
  readonly ca?: string | undefined
  /** Told when the shared nodes cannot serve as they should. */
  readonly lifecycle?: Pick<Lifecycle, 'degraded' | 'recovered'> | undefined
}

/** The nodes that serve one subscription, or all that have none of their own. */
export type Upstream = {
  /** Forwards one JSON-RPC post. `done` is called exactly once, never before this returns. */
  call(call: UpstreamCall, done: (outcome: CallOutcome) => void): { abort(): void }
  ask(call: UpstreamCall): Promise<CallOutcome>
  readonly ws: WsLinks
  readonly grpc: GrpcLinks
  readonly bestSlot: number
  /** All that serve are behind by at least so many slots; undefined when one is not. */
  readonly slotsBehind: number | undefined
  /** Whether a call would find a node now. */
  readonly isAvailable: boolean
}

export type Upstreams = AsyncDisposable & {
  /** The subscription's own nodes where it has any, and then those alone; else the shared ones. */
  of(subscriptionId: string | undefined): Upstream
  /** Takes over which nodes belong to single subscriptions. What did not change keeps its connections. */
  setDedicated(nodes: readonly DedicatedNodeOptions[]): Promise<void>
  /** Gives the node no new work and moves its WebSocket subscriptions away. False when there is no such node. */
  drain(node: string): boolean
  undrain(node: string): boolean
  status(): readonly NodeStatus[]
}

/** Starts the shared pool, its probes and its connections. Nodes that are down are no reason not to start. */
export async function startUpstreams(options: UpstreamsOptions, deps: UpstreamsDeps): Promise<Upstreams> {
  const log = deps.log.child({ part: 'upstreams' })
  const metrics = upstreamsMetrics(
    deps.registry,
    options.nodes.map(({ name }) => name),
    () => (shared.upstream.slotsBehind === undefined ? 0 : 1),
  )
  const started: StartDeps = { ...deps, log, metrics, budget: createRetryBudget(options.calls.retryShare) }
  const specs = await Promise.all(options.nodes.map((node) => sharedSpec(node, options, deps)))
  const shared = startPool(specs, undefined, options, started)
  let dedicated = new Map<string, StartedPool & { readonly key: string }>()
  let isClosed = false

  const allPools = () => [shared, ...dedicated.values()]
  const named = (name: string) =>
    allPools().flatMap((started) =>
      started.pool.nodes.filter((node) => node.name === name).map((node) => ({ node, started })),
    )

  /** A node that cannot be set up leaves its owner without nodes and everybody else alone; the next change tries again. */
  async function startDedicated(owner: string, owned: readonly DedicatedNodeOptions[]): Promise<StartedPool> {
    try {
      const ownSpecs = await Promise.all(owned.map((node) => dedicatedSpec(node, options, deps)))
      const pool = startPool(ownSpecs, owner, options, started)
      log.info({ subscription: owner, upstreams: owned.map(({ name }) => name) }, 'dedicated upstreams taken into use')
      return pool
    } catch (error) {
      log.error({ err: error, subscription: owner }, 'dedicated upstreams cannot be taken into use')
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
  // What happens to nodes of one customer is said with its name.
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
      const { position } = metrics.of(node.label)
      position?.slot.set(node.health.slot)
      position?.lag.set(node.health.lagSlots)
      position?.state(node.state().state)
    }
    if (owner === undefined && nodes.length > 0) reportLifecycle()
  }

  function reportLifecycle(): void {
    const canServe = nodes.some(({ isDrained, breaker }) => !isDrained && breaker.state === 'closed')
    if (!canServe) deps.lifecycle?.degraded('upstreams', 'no node can take calls')
    else if (pool.slotsBehind !== undefined) deps.lifecycle?.degraded('upstreams', 'all nodes that serve are behind')
    else deps.lifecycle?.recovered('upstreams')
  }

  const call: Upstream['call'] = (given, done) =>
    forwardCall(pool, given, options.calls, { clock, metrics, budget: deps.budget, done })
  const opened = opening.move()
  return {
    pool,
    upstream: {
      call,
      ask: (given) => new Promise((resolve) => void call(given, resolve)),
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

/** A node of the configuration, its credential read. */
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

/** The same of a node that one subscription has for itself. */
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
