import type { BlockFetch } from './block-fetch.ts'
import type { RawBlock } from './raw-block.ts'
import type { SlotRange } from './slot-ranges.ts'

export type FillResult =
  | { readonly kind: 'done' }
  /** To be tried again. */
  | { readonly kind: 'later'; readonly reason: string }

export type FillOptions = {
  /** Blocks fetched concurrently. */
  readonly parallel: number
  /** Most blocks of one fill; the frontier requests the rest when these are appended. */
  readonly blocksMax: number
}

/** Fetches the blocks of a range, oldest first. Stops at a block that must exist and that no node returns: the frontier waits for it. */
export async function fillRange(
  range: SlotRange,
  fetch: BlockFetch,
  options: FillOptions,
  onBlock: (raw: RawBlock) => void,
): Promise<FillResult> {
  const listed = await fetch.slotsIn(range)
  if (listed === undefined) return { kind: 'later', reason: 'no node lists the blocks of the gap' }
  // The end of the range is the parent of a held block, so it exists even if the list omits it.
  const slots = [...new Set([...listed, range.to])].toSorted((a, b) => a - b).slice(0, options.blocksMax)
  for (let from = 0; from < slots.length; from += options.parallel) {
    const piece = slots.slice(from, from + options.parallel)
    const fetched = await Promise.all(piece.map((slot) => fetch.fetch(slot)))
    for (const [at, one] of fetched.entries()) {
      const slot = piece[at] as number
      switch (one.kind) {
        case 'block':
          onBlock(one.raw)
          break
        case 'none':
          if (slot === range.to || listed.includes(slot))
            return { kind: 'later', reason: `block ${slot} exists, and no node has it` }
          break
        case 'pruned':
          return {
            kind: 'later',
            reason: `block ${slot} was pruned: an archive node among the upstreams would have it`,
          }
        case 'later':
          return { kind: 'later', reason: `block ${slot}: ${one.reason}` }
      }
    }
  }
  return { kind: 'done' }
}
