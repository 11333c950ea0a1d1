import type { BlockFetch } from './block-fetch.ts'
import type { RawBlock } from './raw-block.ts'
import type { SlotRange } from './slot-ranges.ts'

export type FillResult =
  | { readonly kind: 'done' }
  /** To be tried again. */
  | { readonly kind: 'later'; readonly reason: string }
  /** No node has any block of the range any more. */
  | { readonly kind: 'gone' }

export type FillOptions = {
  /** Blocks fetched concurrently. */
  readonly parallel: number
  /** Most blocks of one fill; the frontier requests the rest when these are appended. */
  readonly blocksMax: number
}

/**
 * Fetches the blocks of a range, oldest first. The end of the range is the parent of a held block, so it exists; `endIsFinal` if that block is final:
 * then a node without the end has lost it. Blocks that no node has any more are left out, and the frontier finds what is missing.
 */
export async function fillRange(
  range: SlotRange,
  fetch: BlockFetch,
  options: FillOptions & { readonly endIsFinal: boolean },
  onBlock: (raw: RawBlock) => void,
): Promise<FillResult> {
  const listed = await fetch.slotsIn(range)
  if (listed === undefined) return { kind: 'later', reason: 'no node lists the blocks of the gap' }
  const isOnlyEnd = !listed.some((slot) => slot < range.to)
  if (!isOnlyEnd || range.from === range.to) {
    const result = await fetchSlots(listed)
    if (result.kind !== 'gone' || range.from === range.to) return result
  }
  // That node has none of it. Others may have kept more.
  const onAnyNode = await fetch.slotsOnAnyNode(range)
  if (onAnyNode === undefined) return { kind: 'later', reason: 'not every node lists the blocks of the gap' }
  return fetchSlots(onAnyNode)

  async function fetchSlots(exist: readonly number[]): Promise<FillResult> {
    const slots = [...new Set([...exist, range.to])].toSorted((a, b) => a - b)
    let blocks = 0
    let isGone = false
    for (let at = 0; at < slots.length && blocks < options.blocksMax; ) {
      const piece = slots.slice(at, at + Math.min(options.parallel, options.blocksMax - blocks))
      at += piece.length
      const fetched = await Promise.all(piece.map((slot) => fetch.fetch(slot)))
      for (const [index, one] of fetched.entries()) {
        const slot = piece[index] as number
        isGone = one.kind === 'pruned' || one.kind === 'none'
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
    return isGone && blocks === 0 ? { kind: 'gone' } : { kind: 'done' }
  }
}
