import { messageOf, ServiceError } from '../../core/error.ts'
import type { NodeSpec } from '../node.ts'
import { dedicatedSpec, type NodesOptions, type SpecDeps } from '../node-spec.ts'
import type { DedicatedNodeOptions, UpstreamsOptions } from '../options.ts'
import { createSlotLength } from '../slot-length.ts'
import { type NodeStatus, statusOf, unusableStatus } from '../status.ts'
import type { NodeChange } from './members.ts'
import { type StartedPool, type StartedPoolDeps, startPool } from './start.ts'

/** A pool for each subscription that has dedicated nodes. A change is made only after the one before it has ended. */
export type DedicatedPools = Disposable & {
  /** Undefined where the subscription has no dedicated nodes. */
  of(subscription: string): StartedPool | undefined
  all(): readonly StartedPool[]
  /** Replaces the list of nodes. Unchanged nodes keep their connections. */
  setNodes(nodes: readonly DedicatedNodeOptions[]): Promise<NodeChange[]>
  /** Keeps the list; applies other options to it and reads the secrets again. */
  setOptions(options: NodesOptions): Promise<NodeChange[]>
  status(): readonly NodeStatus[]
  /** Nodes of all subscriptions, also those that cannot be used. */
  readonly nodeCount: number
}

export type DedicatedPoolsDeps = StartedPoolDeps & SpecDeps

/** The dedicated nodes of one subscription, and those of them that cannot be used. */
type DedicatedPool = StartedPool & { unusable: readonly UnusableNode[] }
type UnusableNode = { readonly name: string; readonly reason: string }

/** Failing dedicated nodes named in a report. */
const NAMED_MAX = 5

export function createDedicatedPools(options: UpstreamsOptions, deps: DedicatedPoolsDeps): DedicatedPools {
  const { log, clock, lifecycle } = deps
  const pools = new Map<string, DedicatedPool>()
  /** Pools of former owners whose calls in flight have not ended. */
  const retired = new Set<StartedPool>()
  let nodesOptions: NodesOptions = options
  let nodes: readonly DedicatedNodeOptions[] = []
  let isClosed = false

  const status = () => [...pools].flatMap(([owner, pool]) => statusesOf(owner, pool))

  function report(): void {
    const failing = status().filter(({ state }) => state === 'failing')
    if (failing.length === 0) return lifecycle?.recovered('dedicated nodes')
    const names = failing.slice(0, NAMED_MAX).map(({ name }) => name)
    const more = failing.length > NAMED_MAX ? ` and ${failing.length - NAMED_MAX} more` : ''
    lifecycle?.degraded('dedicated nodes', `failing: ${names.join(', ')}${more}`)
  }

  function startOwned(owner: string): DedicatedPool {
    // Its nodes may be of another chain.
    const slotLength = createSlotLength({ clock, fallback: deps.slotLength })
    return { ...startPool(owner, options, { ...deps, slotLength, onNodeChange: report }), unusable: [] }
  }

  /** A node that cannot be set up does not affect other nodes and customers; the next change or reload tries again. */
  async function setOwner(owner: string, owned: readonly DedicatedNodeOptions[]): Promise<NodeChange[]> {
    const usable: NodeSpec[] = []
    const unusable: UnusableNode[] = []
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
    const pool = pools.get(owner) ?? startOwned(owner)
    pools.set(owner, pool)
    const changes = setUsable(pool, usable, note)
    pool.unusable = unusable
    if (changes.length > 0) {
      log.info({ subscription: owner, upstreams: usable.map(({ name }) => name) }, 'dedicated upstreams in use')
    }
    return changes
  }

  async function apply(): Promise<NodeChange[]> {
    const changes: NodeChange[] = []
    const owners = Map.groupBy(nodes, ({ subscriptionId }) => subscriptionId)
    for (const [owner, owned] of owners) changes.push(...(await setOwner(owner, owned)))
    for (const [owner, pool] of [...pools]) {
      if (owners.has(owner)) continue
      pools.delete(owner)
      retired.add(pool)
      pool.retire(() => retired.delete(pool))
    }
    report()
    return changes
  }

  return {
    of: (subscription) => pools.get(subscription),
    all: () => [...pools.values()],
    setNodes(next) {
      nodes = next
      return apply()
    },
    setOptions(next) {
      nodesOptions = next
      return apply()
    },
    status,
    get nodeCount() {
      return pools.values().reduce((sum, { pool, unusable }) => sum + pool.nodes.length + unusable.length, 0)
    },
    [Symbol.dispose]() {
      isClosed = true
      for (const pool of [...pools.values(), ...retired]) pool[Symbol.dispose]()
    },
  }
}

function statusesOf(owner: string, { pool, upstream, unusable }: DedicatedPool): NodeStatus[] {
  const used = pool.nodes.map((node) => statusOf(node, owner, upstream))
  return [...used, ...unusable.map((node) => unusableStatus(node, owner))]
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
