import assert from 'node:assert/strict'

export type BoundedQueueOptions<Item> = {
  itemsMax: number
  /** A second bound, on the sum of `weightOf` over the items, for instance bytes. */
  weightMax?: number
  weightOf?: (item: Item) => number
}

const RING_FIRST = 16

/**
 * A FIFO queue with a bound. The caller chooses at each call what happens at the bound: `offer` refuses the new item,
 * `pushDroppingOldest` makes room and returns how many items were dropped.
 */
export class BoundedQueue<Item> {
  readonly #itemsMax: number
  readonly #weightMax: number
  readonly #weightOf: (item: Item) => number
  // A ring that doubles as it fills, so that an idle queue with a high bound is small.
  #ring: (Item | undefined)[] = emptyRing(RING_FIRST)
  #head = 0
  #size = 0
  #weight = 0

  constructor(options: BoundedQueueOptions<Item>) {
    assert(options.itemsMax > 0, 'a queue holds at least one item')
    this.#itemsMax = options.itemsMax
    this.#weightMax = options.weightMax ?? Number.POSITIVE_INFINITY
    this.#weightOf = options.weightOf ?? (() => 0)
  }

  get size(): number {
    return this.#size
  }

  get weight(): number {
    return this.#weight
  }

  /** Takes the item if there is room. */
  offer(item: Item): boolean {
    const weight = this.#weightOf(item)
    if (this.#size >= this.#itemsMax || this.#weight + weight > this.#weightMax) return false
    this.#append(item, weight)
    return true
  }

  /** Takes the item unless its own weight exceeds the bound. Returns how many items were dropped, itself included. */
  pushDroppingOldest(item: Item): number {
    const weight = this.#weightOf(item)
    if (weight > this.#weightMax) return 1
    let dropped = 0
    while (this.#size >= this.#itemsMax || this.#weight + weight > this.#weightMax) {
      this.shift()
      dropped += 1
    }
    this.#append(item, weight)
    return dropped
  }

  peek(): Item | undefined {
    return this.#size === 0 ? undefined : this.#ring[this.#head]
  }

  shift(): Item | undefined {
    if (this.#size === 0) return undefined
    const item = this.#ring[this.#head] as Item
    this.#ring[this.#head] = undefined
    this.#head = (this.#head + 1) % this.#ring.length
    this.#size -= 1
    this.#weight = this.#size === 0 ? 0 : this.#weight - this.#weightOf(item)
    return item
  }

  clear(): void {
    this.#ring = emptyRing(RING_FIRST)
    this.#head = 0
    this.#size = 0
    this.#weight = 0
  }

  *[Symbol.iterator](): Generator<Item> {
    for (let at = 0; at < this.#size; at++) yield this.#ring[(this.#head + at) % this.#ring.length] as Item
  }

  #append(item: Item, weight: number): void {
    if (this.#size === this.#ring.length) this.#grow()
    this.#ring[(this.#head + this.#size) % this.#ring.length] = item
    this.#size += 1
    this.#weight += weight
  }

  #grow(): void {
    const larger = emptyRing<Item>(this.#ring.length * 2)
    for (let at = 0; at < this.#size; at++) larger[at] = this.#ring[(this.#head + at) % this.#ring.length]
    this.#ring = larger
    this.#head = 0
  }
}

function emptyRing<Item>(length: number): (Item | undefined)[] {
  return Array.from({ length })
}

export function createBoundedQueue<Item>(options: BoundedQueueOptions<Item>): BoundedQueue<Item> {
  return new BoundedQueue(options)
}
