import type { NodeOptions } from '../../../upstreams/options.ts'

/** Names of the nodes whose own SubscribeDeshred is merged into ShredStream Decoded. */
export function mergedNames(nodes: readonly NodeOptions[]): string[] {
  return nodes.filter(({ decoded }) => decoded === true).map(({ name }) => name)
}
