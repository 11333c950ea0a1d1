import type { Lifecycle } from '../platform/process/lifecycle.ts'
import { createGrpcLinks, type GrpcLinks, type GrpcLinksDeps } from './grpc-link.ts'
import { forwardCall, forwardToNode, type UpstreamRequest, type UpstreamResponse } from './http-call.ts'
import { createNode, type NodeDeps, type NodeSpec, type UpstreamNode } from './node.ts'
import { specKey } from './node-spec.ts'
import type { UpstreamsOptions } from './options.ts'
import { createPool, type Pool, type PoolDeps } from './pool.ts'
import { probeHere, type StartProbing } from './probes/shared-probes.ts'
import type { RetryBudget } from './retry-budget.ts'
import type { SlotLength, SlotLengthLearner } from './slot-length.ts'
import { createWsLinks, type WsLinks } from './ws-links.ts'

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
  /** Of the chain of these nodes. */
  readonly slotLength: SlotLength
  /** The smallest lag while every available node lags; undefined otherwise. */
  readonly slotsBehind: number | undefined
  /** Whether a node is available for a call now. */
  readonly isAvailable: boolean
}

/** One node of an upstream. A call to it is made whatever its state, and is not retried on another node. */
export type SingleNode = { readonly name: string } & Pick<Upstream, 'forwardAsync'>

/** What a new list of nodes changed for one of them. */
export type NodeChange = {
  readonly name: string
  readonly change: 'added' | 'removed' | 'replaced' | 'weight'
}

export type StartedPool = Disposable & {
  readonly pool: Pool
  readonly upstream: Upstream
  /**
   * Replaces the nodes. An unchanged node keeps its connections; a removed one gets no new work, its calls in flight finish, and its streams move
   * to other nodes. Throws, and changes nothing, where a node cannot be created.
   */
  setNodes(specs: readonly NodeSpec[]): NodeChange[]
  /** Removes all nodes, and calls `done` when their calls in flight have ended. */
  retire(done: () => void): void
}

export type StartedPoolDeps = NodeDeps &
  GrpcLinksDeps &
  PoolDeps & {
    readonly budget: RetryBudget
    /** Learns from the nodes of this pool. */
    readonly slotLength: SlotLengthLearner
    /** Notified when the shared nodes are down or lag. */
    readonly lifecycle?: Pick<Lifecycle, 'degraded' | 'recovered'> | undefined
    /** Default: this thread probes the nodes itself. */
    readonly probing?: StartProbing | undefined
    /** The state of a node may have changed. */
    readonly onNodeChange?: () => void
  }

type Member = { readonly node: UpstreamNode; readonly key: string; probes: Disposable }

/** How often a removed node is checked for calls in flight. */
const RETIRE_CHECK_MS = 100
const NO_PROBES: Disposable = { [Symbol.dispose]() {} }

/** A pool without nodes at first, with its probes and connections. */
export function startPool(owner: string | undefined, options: UpstreamsOptions, deps: StartedPoolDeps): StartedPool {
  const { metrics, clock, slotLength } = deps
  const slotMs = slotLength.ms
  // Log lines about dedicated nodes carry their subscription.
  const log = owner === undefined ? deps.log : deps.log.child({ subscription: owner })
  let members = new Map<string, Member>()
  /** Removed nodes with calls in flight. */
  const retiring = new Set<Disposable>()
  let onRetired = () => {}
  const pool = createPool([], owner, { log, onAssessed: report })
  const ws = createWsLinks(pool, options, { ...deps, slotMs, onSlot: compare })
  const grpc = createGrpcLinks(pool, options.connections, deps)

  function setNodes(specs: readonly NodeSpec[]): NodeChange[] {
    const before = members
    const next = membersOf(specs)
    const changes = changesFrom(before, next, specs)
    members = next
    for (const [name, member] of next) if (before.get(name) !== member) enter(member)
    pool.setNodes([...next.values()].map(({ node }) => node))
    for (const [name, member] of before) if (next.get(name) !== member) leave(member)
    report()
    return changes
  }

  /** Creates the new nodes, all or none. */
  function membersOf(specs: readonly NodeSpec[]): Map<string, Member> {
    using created = new DisposableStack()
    const next = new Map<string, Member>()
    for (const spec of specs) {
      const key = specKey(spec)
      const known = members.get(spec.name)
      const isSame = known?.key === key
      const member = isSame
        ? known
        : { node: created.use(createNode(spec, options, { ...deps, slotMs })), key, probes: NO_PROBES }
      if (known !== undefined) member.node.isDrained = known.node.isDrained
      next.set(spec.name, member)
    }
    created.move()
    return next
  }

  function changesFrom(
    before: ReadonlyMap<string, Member>,
    next: ReadonlyMap<string, Member>,
    specs: readonly NodeSpec[],
  ): NodeChange[] {
    const changes: NodeChange[] = []
    for (const { name, weight } of specs) {
      const { node } = next.get(name) as Member
      const known = before.get(name)?.node
      if (known === undefined) changes.push({ name, change: 'added' })
      else if (known !== node) changes.push({ name, change: 'replaced' })
      else if (node.weight !== weight) {
        node.weight = weight
        changes.push({ name, change: 'weight' })
      }
    }
    for (const name of before.keys()) if (!next.has(name)) changes.push({ name, change: 'removed' })
    return changes
  }

  function enter(member: Member): void {
    const { node } = member
    let wasFailing = false
    metrics.add(node.label)
    node.onChange = () => {
      const isFailing = node.breaker.state !== 'closed' || node.isSilent
      if (isFailing !== wasFailing) {
        if (isFailing) log.warn({ upstream: node.name, reason: node.lastFailure }, 'upstream is failing')
        else log.info({ upstream: node.name }, 'upstream works again')
      }
      wasFailing = isFailing
      report()
      deps.onNodeChange?.()
    }
    node.onSilent = () => {
      // Without another node they are better off waiting: it may only be slow.
      if (pool.nodes.some((other) => other.candidates.rpc.isAvailable && !other.isSilent)) node.http?.giveUp()
    }
    ws.add(node)
    grpc.add(node)
    member.probes = (deps.probing ?? probeHere)({
      ...{ node, options: options.health, clock, random: deps.random },
      onSlot: () => compare(node),
      onSlotLength: (ms) => slotLength.report(node, ms),
      // Owners may have nodes that are the same.
      key: `${owner ?? ''} ${member.key}`,
    })
  }

  /** A node that catches up shows slots faster than the chain has them. */
  function compare(node: UpstreamNode): void {
    pool.assess()
    if (!node.health.isBehindShreds) slotLength.observe(node, node.health.slot)
  }

  function leave({ node, probes }: Member): void {
    node.onChange = () => {}
    probes[Symbol.dispose]()
    ws.remove(node)
    slotLength.forget(node)
    const sessions = grpc.remove(node)
    const endMs = clock.monotonicMs() + options.calls.heavyDeadlineMs
    const entry: Disposable = {
      [Symbol.dispose]() {
        timer.cancel()
        retiring.delete(entry)
        sessions[Symbol.dispose]()
        node[Symbol.dispose]()
        metrics.remove(node.label)
        if (retiring.size === 0) onRetired()
      },
    }
    const check = () => {
      const isBusy = (node.http?.inFlight ?? 0) + node.open.grpc > 0
      if (!isBusy || clock.monotonicMs() >= endMs) entry[Symbol.dispose]()
    }
    const timer = clock.setRepeating(RETIRE_CHECK_MS, check)
    timer.unref?.()
    retiring.add(entry)
    check()
  }

  function report(): void {
    for (const { node } of members.values()) {
      const { health } = metrics.of(node.label)
      health?.slot.set(node.health.slot)
      health?.lag.set(node.health.lagSlots)
      health?.lagSeconds.set(node.health.lagMs / 1000)
      health?.state(node.state().state)
    }
    if (owner === undefined && members.size > 0) reportLifecycle()
  }

  function reportLifecycle(): void {
    const canServe = pool.nodes.some(
      ({ isDrained, isSilent, breaker }) => !isDrained && !isSilent && breaker.state === 'closed',
    )
    if (!canServe) deps.lifecycle?.degraded('upstreams', 'no node can take calls')
    else if (pool.slotsBehind !== undefined) deps.lifecycle?.degraded('upstreams', 'all available nodes lag')
    else deps.lifecycle?.recovered('upstreams')
  }

  const calling = { clock, metrics, budget: deps.budget }
  const forward: Upstream['forward'] = (request, done) =>
    forwardCall(pool, request, options.calls, { ...calling, done })
  const singleNode = (node: UpstreamNode): SingleNode => ({
    name: node.name,
    forwardAsync: (request) =>
      new Promise((resolve) => forwardToNode(pool, node, request, options.calls, { ...calling, done: resolve })),
  })
  return {
    pool,
    upstream: {
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
    },
    setNodes,
    retire(done) {
      setNodes([])
      ws[Symbol.dispose]()
      grpc[Symbol.dispose]()
      onRetired = done
      if (retiring.size === 0) done()
    },
    [Symbol.dispose]() {
      onRetired = () => {}
      for (const { node, probes } of members.values()) {
        node.onChange = () => {}
        probes[Symbol.dispose]()
      }
      ws[Symbol.dispose]()
      grpc[Symbol.dispose]()
      for (const { node } of members.values()) node[Symbol.dispose]()
      for (const entry of [...retiring]) entry[Symbol.dispose]()
    },
  }
}
