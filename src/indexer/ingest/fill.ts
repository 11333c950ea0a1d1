import type { BlockFetch } from './block-fetch.ts'
import type { RawBlock } from './raw-block.ts'
import type { SlotRange } from './slot-ranges.ts'

export type FillResult =
  | { readonly kind: 'done' }
  /** Worth another try: the reason. */
  | { readonly kind: 'later'; readonly message: string }

export type FillOptions = {
  /** Blocks asked for at a time. */
  readonly parallel: number
  /** Most blocks brought in one go; the rest is asked for again when these have their place. */
  readonly blocksMax: number
}

/**
 * Brings the blocks of a range, oldest first. A block that the caller knows to exist (`mustHave`, the parent of one that waits) and no node gives
 * is no reason to go on: the frontier waits for it.
 */
export async function fillRange(
  range: SlotRange,
  fetch: BlockFetch,
  options: FillOptions,
  onBlock: (raw: RawBlock) => void,
): Promise<FillResult> {
  const listed = await fetch.slotsIn(range)
  if (listed === undefined) return { kind: 'later', message: 'no node lists the blocks of the gap' }
  // The end of the range is the parent of a block that is here, whatever the list says.
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
            return { kind: 'later', message: `block ${slot} exists, and no node has it` }
          break
        case 'pruned':
          return {
            kind: 'later',
            message: `block ${slot} was pruned: an archive node among the upstreams would have it`,
          }
        case 'later':
          return { kind: 'later', message: `block ${slot}: ${one.message}` }
      }
    }
  }
  return { kind: 'done' }
}
