import type { Logger } from '../platform/telemetry/logger.ts'
import type { NodeCandidate, ServerKind, UpstreamNode } from './node.ts'
import { pick } from './pick.ts'

/** How far a client has been taken along the chain; whoever serves it keeps one of these for it. */
export type ClientView = { slot: number }

export function createClientView(): ClientView {
  return { slot: 0 }
}

/** Nodes that stand in for each other: those all subscriptions share, or those that one has for itself. */
export type Pool = {
  /** The subscription that owns it; undefined for the shared pool. */
  readonly owner: string | undefined
  readonly nodes: readonly UpstreamNode[]
  readonly bestSlot: number
  /** Every node that could be taken is behind; they are taken all the same. The least number of slots it is behind. */
  readonly slotsBehind: number | undefined
  pick(kind: ServerKind, view?: ClientView, except?: UpstreamNode): UpstreamNode | undefined
  /** A node's slot moved, or its state: compares all of them anew. */
  assess(): void
}

export type PoolDeps = { readonly log: Logger; readonly onAssessed?: () => void }

export function createPool(nodes: readonly UpstreamNode[], owner: string | undefined, deps: PoolDeps): Pool {
  const candidates: Readonly<Record<ServerKind, readonly NodeCandidate[]>> = {
    rpc: nodes.map((node) => node.candidates.rpc),
    ws: nodes.map((node) => node.candidates.ws),
    grpc: nodes.map((node) => node.candidates.grpc),
  }
  let bestSlot = 0
  let turn = 0

  function assess(): void {
    bestSlot = nodes.reduce((best, { health }) => Math.max(best, health.slot), 0)
    for (const node of nodes) {
      if (!node.health.assess(bestSlot)) continue
      const { isLagging, lagSlots, lagReason } = node.health
      if (isLagging) deps.log.warn({ upstream: node.name, lagSlots, reason: lagReason }, 'upstream fell behind')
      else deps.log.info({ upstream: node.name, lagSlots }, 'upstream caught up')
    }
    deps.onAssessed?.()
  }

  return {
    owner,
    nodes,
    get bestSlot() {
      return bestSlot
    },
    get slotsBehind() {
      let least: number | undefined
      for (const { isAvailable, node } of candidates.rpc) {
        if (!isAvailable) continue
        const { isLagging, lagSlots, shredSlot, slot } = node.health
        if (!isLagging) return undefined
        least = Math.min(least ?? Number.POSITIVE_INFINITY, Math.max(lagSlots, shredSlot - slot))
      }
      return least
    },
    pick(kind, view, except) {
      turn = (turn + 1) % 0x3fffffff
      const all = candidates[kind]
      const some = except === undefined ? all : all.filter(({ node }) => node !== except)
      return pick(some, { minSlot: view?.slot ?? 0, turn })?.node
    },
    assess,
  }
}
