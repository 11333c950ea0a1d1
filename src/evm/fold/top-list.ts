/** Inserts into a short sorted list and lets the last one go when it is too long. `comesFirst` is a strict total order. */
export function keepFirst<Item>(
  top: Item[],
  length: number,
  item: Item,
  comesFirst: (x: Item, y: Item) => boolean,
): void {
  if (top.length === length && !comesFirst(item, top[length - 1] as Item)) return
  let place = top.length
  while (place > 0 && comesFirst(item, top[place - 1] as Item)) place -= 1
  top.splice(place, 0, item)
  if (top.length > length) top.pop()
}
