import { createNode } from '../create-node.ts'
import { createGrpcLinks, type GrpcLinksDeps } from '../grpc-link.ts'
import type { NodeDeps, NodeSpec, UpstreamNode } from '../node.ts'
import type { UpstreamsOptions } from '../options.ts'
import { NO_PROBES } from '../probes/probe.ts'
import { probeHere, type StartProbing } from '../probes/shared-probes.ts'
import type { RetryBudget } from '../retry-budget.ts'
import type { SlotLengthLearner } from '../slot-length.ts'
import { createUpstream, type Upstream } from '../upstream.ts'
import { createWsLinks } from '../ws/links.ts'
import { changesFrom, type Member, type Members, membersOf, type NodeChange, setWeights } from './members.ts'
import { createPool, type Pool, type PoolDeps } from './pool.ts'
import { logFailing, type PoolReportDeps, reportPool } from './report.ts'
import { createRetiringNodes } from './retiring-nodes.ts'

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
  Pick<PoolDeps, 'log'> &
  PoolReportDeps & {
    readonly budget: RetryBudget
    /** Learns from the nodes of this pool. */
    readonly slotLength: SlotLengthLearner
    /** Default: this thread probes the nodes itself. */
    readonly probing?: StartProbing | undefined
    /** The state of a node may have changed. */
    readonly onNodeChange?: () => void
  }

/** A pool without nodes at first, with its probes and connections. */
export function startPool(owner: string | undefined, options: UpstreamsOptions, deps: StartedPoolDeps): StartedPool {
  const { clock, slotLength } = deps
  const slotMs = slotLength.ms
  // Log lines about dedicated nodes carry their subscription.
  const log = owner === undefined ? deps.log : deps.log.child({ subscription: owner })
  let members: Members = new Map()
  const report = () => reportPool(pool, deps)
  const pool = createPool([], owner, {
    log,
    clock,
    slotMs,
    onAssessed: report,
  })
  const ws = createWsLinks(pool, options, { ...deps, slotMs, onSlot: onSlotSeen })
  const grpc = createGrpcLinks(pool, options.connections, deps)
  const retiring = createRetiringNodes({ deadlineMs: options.calls.heavyDeadlineMs }, deps)

  function setNodes(specs: readonly NodeSpec[]): NodeChange[] {
    const before = members
    const next = membersOf(specs, before, createMember)
    const changes = changesFrom(before, next, specs)
    setWeights(next, specs)
    members = next
    for (const [name, member] of next) if (before.get(name) !== member) enter(member)
    pool.setNodes([...next.values()].map(({ node }) => node))
    for (const [name, member] of before) if (next.get(name) !== member) leave(member)
    report()
    return changes
  }

  function createMember(spec: NodeSpec, key: string): Member {
    const events = {
      requestProbe: () => member.probes.probe(),
      onSilent: () => moveCalls(member.node),
      onChange: () => onChange(member),
    }
    const node = createNode(spec, options, { ...deps, slotMs }, events)
    const member: Member = { node, key, probes: NO_PROBES, isActive: false, wasFailing: false }
    return member
  }

  function enter(member: Member): void {
    const { node } = member
    deps.metrics.add(node.label)
    member.isActive = true
    ws.add(node)
    grpc.add(node)
    member.probes = (deps.probing ?? probeHere)({
      node,
      options: options.health,
      clock,
      random: deps.random,
      onSlot: () => onSlotSeen(node),
      onSlotLength: (ms) => slotLength.report(node, ms),
      // Owners may have nodes that are the same.
      key: `${owner ?? ''} ${member.key}`,
    })
  }

  function leave(member: Member): void {
    const { node, probes } = member
    member.isActive = false
    probes[Symbol.dispose]()
    ws.remove(node)
    slotLength.forget(node)
    retiring.add(node, grpc.remove(node))
  }

  function onChange(member: Member): void {
    if (!member.isActive) return
    logFailing(member, log)
    report()
    deps.onNodeChange?.()
  }

  /** Moves the calls in flight away from a silent node. Without another node they are better off waiting: it may only be slow. */
  function moveCalls({ http }: UpstreamNode): void {
    if (pool.nodes.some((other) => other.candidates.rpc.isAvailable && !other.isSilent)) http?.giveUp()
  }

  function onSlotSeen(node: UpstreamNode): void {
    pool.assess()
    // Not from a node that catches up: its slots pass faster than those of the chain.
    if (!node.health.isBehindShreds) slotLength.observe(node, node.health.slot)
  }

  return {
    pool,
    upstream: createUpstream(pool, options.calls, { ...deps, ws, grpc }),
    setNodes,
    retire(done) {
      setNodes([])
      ws[Symbol.dispose]()
      grpc[Symbol.dispose]()
      retiring.whenEmpty(done)
    },
    [Symbol.dispose]() {
      for (const member of members.values()) {
        member.isActive = false
        member.probes[Symbol.dispose]()
      }
      ws[Symbol.dispose]()
      grpc[Symbol.dispose]()
      for (const { node } of members.values()) node[Symbol.dispose]()
      retiring[Symbol.dispose]()
    },
  }
}
