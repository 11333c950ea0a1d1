/** Inserts into a short sorted list and lets the last one go when it is too long. `comesFirst` is a strict total order. */
export function keepFirst<Item>(
  top: Item[],
  length: number,
  item: Item,
  comesFirst: (x: Item, y: Item) => boolean,
): void {
  if (top.length === length && !comesFirst(item, top[length - 1] as Item)) return
  let position = top.length
  while (position > 0 && comesFirst(item, top[position - 1] as Item)) position -= 1
  top.splice(position, 0, item)
  if (top.length > length) top.pop()
}
