import type { BlockFetch } from './block-fetch.ts'
import type { RawBlock } from './raw-block.ts'
import type { SlotRange } from './slot-ranges.ts'

export type FillResult =
  | { readonly kind: 'done' }
  /** To be tried again. */
  | { readonly kind: 'later'; readonly reason: string }
  /** No node has any block of the range any more. */
  | { readonly kind: 'unavailable' }

export type FillOptions = {
  /** Blocks fetched concurrently. */
  readonly parallel: number
  /** Most blocks of one fill; the frontier requests the rest when these are appended. */
  readonly blocksMax: number
}

/** A piece of the range is listed at a time: the first has so many slots for each block of a fill, because slots may be skipped. */
const SLOTS_PER_BLOCK = 4
/** Pieces without a block are followed by larger ones, up to this length: a listing is read on the thread that serves queries. */
const PIECE_SLOTS_MAX = 65_536

/**
 * Fetches the first blocks of a range, oldest first. The end of the range is the parent of a held block, so it exists; `endIsFinal` if that block is
 * final: then a node without the end has lost it. Blocks that no node has any more are left out, and the frontier finds what is missing.
 */
export async function fillRange(
  range: SlotRange,
  fetch: BlockFetch,
  options: FillOptions & { readonly endIsFinal: boolean },
  onBlock: (raw: RawBlock) => void,
): Promise<FillResult> {
  const ofOneNode = await fillFrom((piece) => fetch.slotsIn(piece), { isOneNode: true })
  if (ofOneNode === undefined) return { kind: 'later', reason: 'no node lists the blocks of the gap' }
  if (ofOneNode.kind !== 'unavailable' || range.from === range.to) return ofOneNode
  // That node has none of it. Others may have kept more.
  const ofAnyNode = await fillFrom((piece) => fetch.slotsOnAnyNode(piece), { isOneNode: false })
  return ofAnyNode ?? { kind: 'later', reason: 'not every node lists the blocks of the gap' }

  /** Lists piece after piece until one has a block. Undefined when a listing fails; `unavailable` when the end is reached without a block. */
  async function fillFrom(
    list: BlockFetch['slotsIn'],
    { isOneNode }: { readonly isOneNode: boolean },
  ): Promise<FillResult | undefined> {
    let length = Math.min(options.blocksMax * SLOTS_PER_BLOCK, PIECE_SLOTS_MAX)
    let isFirstAsked = false
    for (let from = range.from; ; length = Math.min(length * 2, PIECE_SLOTS_MAX)) {
      const to = Math.min(range.to, from + length - 1)
      const listed = await list({ from, to })
      if (listed === undefined) return undefined
      if (to < range.to) {
        const result = await fetchSlots(listed)
        if (result.kind !== 'unavailable') return result
        // Nodes that pruned a month are not asked for each piece of it.
        const first = isFirstAsked ? undefined : await fetch.firstOnAnyNode()
        isFirstAsked = true
        from = Math.max(to + 1, Math.min(first ?? 0, range.to))
        continue
      }
      const hasOnlyEnd = listed.every((slot) => slot === range.to)
      if (isOneNode && hasOnlyEnd && range.from < range.to) return { kind: 'unavailable' }
      return fetchSlots(listed.includes(range.to) ? listed : [...listed, range.to])
    }
  }

  /** `unavailable` when none of these blocks can be had. */
  async function fetchSlots(slots: readonly number[]): Promise<FillResult> {
    let blocks = 0
    for (let at = 0; at < slots.length && blocks < options.blocksMax; ) {
      const piece = slots.slice(at, at + Math.min(options.parallel, options.blocksMax - blocks))
      at += piece.length
      const fetched = await Promise.all(piece.map((slot) => fetch.fetch(slot)))
      for (const [index, one] of fetched.entries()) {
        const slot = piece[index] as number
        if (one.kind === 'later') return { kind: 'later', reason: `block ${slot}: ${one.reason}` }
        if (one.kind === 'none' && !options.endIsFinal)
          return { kind: 'later', reason: `block ${slot} exists, and no node has it` }
        if (one.kind === 'block') {
          onBlock(one.raw)
          blocks++
        }
      }
      if (!fetched.some(({ kind }) => kind === 'pruned')) continue
      const first = await fetch.firstOnAnyNode()
      if (first === undefined) return { kind: 'later', reason: 'a node that may have the blocks does not respond' }
      while (at < slots.length - 1 && (slots[at] as number) < first) at++
    }
    return blocks === 0 ? { kind: 'unavailable' } : { kind: 'done' }
  }
}
