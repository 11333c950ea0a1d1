import type { NodeSpec, UpstreamNode } from '../node.ts'
import { specKey } from '../node-spec.ts'
import type { Probes } from '../probes/probe.ts'

/** A node of a pool, with its probes. */
export type Member = {
  readonly node: UpstreamNode
  /** Another spec than before has another key, unless only the weight differs. */
  readonly key: string
  probes: Probes
  /** From when it enters the pool until it leaves: its changes are reported. */
  isActive: boolean
  /** As last logged. */
  wasFailing: boolean
}

/** By the name of the node. */
export type Members = ReadonlyMap<string, Member>

/** What a new list of nodes changed for one of them. */
export type NodeChange = {
  readonly name: string
  readonly change: 'added' | 'removed' | 'replaced' | 'weight'
}

/** The members for a new list of nodes. Unchanged nodes are kept; the others are created, all or none. */
export function membersOf(
  specs: readonly NodeSpec[],
  before: Members,
  create: (spec: NodeSpec, key: string) => Member,
): Members {
  using created = new DisposableStack()
  const next = new Map<string, Member>()
  for (const spec of specs) {
    const key = specKey(spec)
    const known = before.get(spec.name)
    if (known?.key === key) next.set(spec.name, known)
    else {
      const member = create(spec, key)
      created.use(member.node)
      if (known !== undefined) member.node.setDrained(known.node.isDrained)
      next.set(spec.name, member)
    }
  }
  created.move()
  return next
}

/** Before `setWeights`: a changed weight is one of the changes. */
export function changesFrom(before: Members, next: Members, specs: readonly NodeSpec[]): NodeChange[] {
  const changes: NodeChange[] = []
  for (const { name, weight } of specs) {
    const { node } = next.get(name) as Member
    const known = before.get(name)?.node
    if (known === undefined) changes.push({ name, change: 'added' })
    else if (known !== node) changes.push({ name, change: 'replaced' })
    else if (node.weight !== weight) changes.push({ name, change: 'weight' })
  }
  for (const name of before.keys()) if (!next.has(name)) changes.push({ name, change: 'removed' })
  return changes
}

export function setWeights(members: Members, specs: readonly NodeSpec[]): void {
  for (const { name, weight } of specs) members.get(name)?.node.setWeight(weight)
}
