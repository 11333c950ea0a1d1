/** Slots near each other that packets belong to. */
export type SlotGroup = { readonly slot: number; readonly version: number; readonly packets: number }

const SIZE = 256

/** An even sample of the slots of any number of packets, in a fixed memory: when it is full, half of it is dropped, and half as many are taken from then on. */
export class SlotSample {
  readonly #slots = new Float64Array(SIZE)
  readonly #versions = new Uint16Array(SIZE)
  #kept = 0
  #total = 0
  #stride = 1
  #skip = 0
  #random = 1

  /** Packets added. */
  get total(): number {
    return this.#total
  }

  add(slot: number, version: number): void {
    this.#total += 1
    if (this.#skip > 0) {
      this.#skip -= 1
      return
    }
    this.#slots[this.#kept] = slot
    this.#versions[this.#kept] = version
    this.#kept += 1
    if (this.#kept === SIZE) this.#halve()
    if (this.#stride > 1) this.#skip = this.#below(2 * this.#stride - 1)
  }

  clear(): void {
    this.#kept = 0
    this.#total = 0
    this.#stride = 1
    this.#skip = 0
  }

  /** The highest slot that at least this share of the packets have reached; at least one packet was added. */
  reachedBy(share: number): number {
    return reachedBy(this.#slots.slice(0, this.#kept).sort(), share)
  }

  /** The highest slot above `from` that so many packets have reached, with as many not further away than the length of a window. */
  highest(
    from: { readonly slot: number; readonly version: number },
    packets: number,
    slots: number,
  ): SlotGroup | undefined {
    const needed = Math.ceil((packets / this.#total) * this.#kept)
    const above = this.#slots
      .slice(0, this.#kept)
      .filter((slot, i) => slot > from.slot && this.#versions[i] === from.version)
      .sort()
    const slot = above[above.length - needed]
    if (slot === undefined) return undefined
    const near = above.filter((other) => Math.abs(other - slot) <= slots).length
    return near < needed ? undefined : { slot, version: from.version, packets: (near / this.#kept) * this.#total }
  }

  /** The most packets of one version within so many slots, and the slot that this share of them have reached. */
  densest(slots: number, share: number, isWanted: (slot: number, version: number) => boolean): SlotGroup | undefined {
    const byVersion = new Map<number, number[]>()
    for (let i = 0; i < this.#kept; i++) {
      const [slot, version] = [this.#slots[i] as number, this.#versions[i] as number]
      if (!isWanted(slot, version)) continue
      const known = byVersion.get(version)
      if (known === undefined) byVersion.set(version, [slot])
      else known.push(slot)
    }
    let densest: SlotGroup | undefined
    for (const [version, members] of byVersion) {
      const group = longestRun(
        members.sort((a, b) => a - b),
        slots,
      )
      const packets = (group.length / this.#kept) * this.#total
      if (densest === undefined || packets >= densest.packets)
        densest = { slot: reachedBy(group, share), version, packets }
    }
    return densest
  }

  /** Keeps one of each two. Which one is random, as are the distances of those taken: packets of several sources often come in turn. */
  #halve(): void {
    for (let i = 0; i < SIZE / 2; i++) {
      const from = 2 * i + this.#below(2)
      this.#slots[i] = this.#slots[from] as number
      this.#versions[i] = this.#versions[from] as number
    }
    this.#kept = SIZE / 2
    this.#stride *= 2
  }

  /** A number from 0 to `below` - 1. */
  #below(below: number): number {
    this.#random = (Math.imul(this.#random, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((this.#random / 2 ** 32) * below)
  }
}

function reachedBy(ascending: ArrayLike<number>, share: number): number {
  return ascending[ascending.length - Math.ceil(ascending.length * share)] as number
}

/** The most of these ascending slots within a distance; of two equal runs the later one. */
function longestRun(sorted: readonly number[], distance: number): readonly number[] {
  let [from, to, first] = [0, 0, 0]
  for (let last = 0; last < sorted.length; last++) {
    while ((sorted[last] as number) - (sorted[first] as number) > distance) first += 1
    if (last + 1 - first >= to - from) [from, to] = [first, last + 1]
  }
  return sorted.slice(from, to)
}
