import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { UNKNOWN_LAG } from '../health.ts'
import type { EndpointKind, NodeCandidate, UpstreamNode } from '../node.ts'
import { createChainTip } from './chain-tip.ts'
import { pick } from './pick.ts'

/** The newest slot a client has seen; kept by the server for each connection. */
export type ClientView = { slot: number }

export function createClientView(): ClientView {
  return { slot: 0 }
}

/** Nodes that can replace each other: the shared ones, or the dedicated ones of a subscription. */
export type Pool = {
  /** The subscription that owns it; undefined for the shared pool. */
  readonly owner: string | undefined
  readonly nodes: readonly UpstreamNode[]
  setNodes(nodes: readonly UpstreamNode[]): void
  readonly bestSlot: number
  /** Set while every available node lags: the smallest lag. They are used all the same. */
  readonly slotsBehind: number | undefined
  pick(kind: EndpointKind, view?: ClientView, except?: UpstreamNode): UpstreamNode | undefined
  /** Compares all nodes again, after a slot or state has changed. */
  assess(): void
}

export type PoolDeps = {
  readonly log: Logger
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** The length of a slot of the chain. */
  readonly slotMs: () => number
  readonly onAssessed?: () => void
}

type Candidates = Readonly<Record<EndpointKind, readonly NodeCandidate[]>>

export function createPool(first: readonly UpstreamNode[], owner: string | undefined, deps: PoolDeps): Pool {
  let nodes = first
  let candidates = candidatesOf(first)
  const tip = createChainTip({ slotMs: deps.slotMs })
  let offset = 0

  function assess(): void {
    tip.assess(nodes, deps.clock.monotonicMs())
    for (const node of nodes) {
      if (!node.health.assess(tip.slot, tip.isAhead(node))) continue
      const { isLagging, lagSlots, lagReason, slot } = node.health
      if (lagReason === 'ahead-of-all')
        deps.log.warn({ upstream: node.name, slot, bestSlot: tip.slot }, 'upstream reports a slot far above all others')
      else if (lagReason === 'no-slot') deps.log.warn({ upstream: node.name }, 'upstream does not report its slot')
      else if (isLagging) deps.log.warn({ upstream: node.name, lagSlots, reason: lagReason }, 'upstream fell behind')
      else deps.log.info({ upstream: node.name, lagSlots }, 'upstream caught up')
    }
    deps.onAssessed?.()
  }

  return {
    owner,
    get nodes() {
      return nodes
    },
    setNodes(next) {
      nodes = next
      candidates = candidatesOf(next)
      assess()
    },
    get bestSlot() {
      return tip.slot
    },
    get slotsBehind() {
      let least: number | undefined
      for (const { isAvailable, node } of candidates.rpc) {
        if (!isAvailable) continue
        const { isLagging, lagReason, lagSlots, shredSlot, slot } = node.health
        if (UNKNOWN_LAG.includes(lagReason)) continue
        if (!isLagging) return undefined
        least = Math.min(least ?? Number.POSITIVE_INFINITY, Math.max(lagSlots, shredSlot - slot))
      }
      return least
    },
    pick(kind, view, except) {
      offset = (offset + 1) % 0x3fffffff
      const all = candidates[kind]
      const some = except === undefined ? all : all.filter(({ node }) => node !== except)
      return pick(some, { minSlot: view?.slot ?? 0, offset })?.node
    },
    assess,
  }
}

function candidatesOf(nodes: readonly UpstreamNode[]): Candidates {
  return {
    rpc: nodes.map((node) => node.candidates.rpc),
    ws: nodes.map((node) => node.candidates.ws),
    grpc: nodes.map((node) => node.candidates.grpc),
  }
}
