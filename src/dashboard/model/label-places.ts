/** A rectangle in the graph, in pixels. */
export type Box = { readonly left: number; readonly right: number; readonly top: number; readonly bottom: number }
type Node = { readonly x: number; readonly y: number; readonly size: number }
type Size = { readonly width: number; readonly height: number }

const GAP = 4
/** Margin around a label. */
const AIR = 2
/** Larger than any canvas. */
const FAR = 100_000

/** Possible positions of a node's label, best first: right, left, below, above. */
export function positionsBeside({ x, y, size }: Node, { width, height }: Size): [Box, ...Box[]] {
  const boxAt = (left: number, top: number): Box => ({ left, right: left + width, top, bottom: top + height })
  return [
    boxAt(x + size + GAP, y - height / 2),
    boxAt(x - size - GAP - width, y - height / 2),
    boxAt(x - width / 2, y + size + GAP),
    boxAt(x - width / 2, y - size - GAP - height),
  ]
}

/** The best position that overlaps nothing; undefined where there is none: a missing label is better than two unreadable ones. */
export function freePosition(node: Node, size: Size, taken: readonly Box[]): Box | undefined {
  return positionsBeside(node, size).find((position) => !taken.some((box) => overlap(position, box)))
}

/** Boxes around a canvas of this size. */
export function outside({
  clientWidth: width,
  clientHeight: height,
}: {
  clientWidth: number
  clientHeight: number
}): Box[] {
  return [
    { left: -FAR, right: 0, top: -FAR, bottom: FAR },
    { left: width, right: FAR, top: -FAR, bottom: FAR },
    { left: -FAR, right: FAR, top: -FAR, bottom: 0 },
    { left: -FAR, right: FAR, top: height, bottom: FAR },
  ]
}

function overlap(a: Box, b: Box): boolean {
  return a.left < b.right + AIR && b.left < a.right + AIR && a.top < b.bottom + AIR && b.top < a.bottom + AIR
}
