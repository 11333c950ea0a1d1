/** Slots from `from` to `to`, both inclusive, that are complete: each has its block or was skipped. */
export type SlotRange = { readonly from: number; readonly to: number }

/** Adds a range and merges adjacent and overlapping ones. The list is sorted and its ranges are disjoint. */
export function addRange(ranges: readonly SlotRange[], added: SlotRange): SlotRange[] {
  const disjoint = ranges.filter(({ from, to }) => to < added.from - 1 || from > added.to + 1)
  const joined = ranges.filter(({ from, to }) => !(to < added.from - 1 || from > added.to + 1))
  const from = Math.min(added.from, ...joined.map((range) => range.from))
  const to = Math.max(added.to, ...joined.map((range) => range.to))
  return [...disjoint, { from, to }].toSorted((a, b) => a.from - b.from)
}

export function overlaps(ranges: readonly SlotRange[], { from, to }: SlotRange): boolean {
  return ranges.some((range) => range.from <= to && range.to >= from)
}

/** Removes every slot from `slot` on. */
export function cutFrom(ranges: readonly SlotRange[], slot: number): SlotRange[] {
  return ranges.filter(({ from }) => from < slot).map(({ from, to }) => ({ from, to: Math.min(to, slot - 1) }))
}

/** Removes the slots of `hole`. */
export function withoutRange(ranges: readonly SlotRange[], hole: SlotRange): SlotRange[] {
  return ranges.flatMap(({ from, to }) =>
    [
      { from, to: Math.min(to, hole.from - 1) },
      { from: Math.max(from, hole.to + 1), to },
    ].filter((part) => part.from <= part.to),
  )
}
