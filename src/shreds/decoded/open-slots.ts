import { OpenSlot } from './slot.ts'

/** The open slots of an engine, in the order of their numbers. The objects of closed ones are used again. */
export class OpenSlots {
  readonly #setsPerSlotMax: number
  readonly #byNumber = new Map<number, OpenSlot>()
  /** Ascending. */
  readonly #numbers: number[] = []
  /** Found last: most shreds are of the same slot as the one before. */
  #latest: OpenSlot | undefined
  readonly #free: OpenSlot[] = []

  constructor(setsPerSlotMax: number) {
    this.#setsPerSlotMax = setsPerSlotMax
  }

  get size(): number {
    return this.#numbers.length
  }

  get oldest(): OpenSlot | undefined {
    const [number] = this.#numbers
    return number === undefined ? undefined : this.#byNumber.get(number)
  }

  find(number: number): OpenSlot | undefined {
    if (this.#latest?.slot === number) return this.#latest
    const found = this.#byNumber.get(number)
    if (found !== undefined) this.#latest = found
    return found
  }

  open(number: number, arrivalNanos: number): OpenSlot {
    const slot = this.#free.pop() ?? new OpenSlot(this.#setsPerSlotMax)
    slot.begin(number, arrivalNanos)
    this.#byNumber.set(number, slot)
    let place = this.#numbers.length
    while (place > 0 && (this.#numbers[place - 1] as number) > number) place -= 1
    this.#numbers.splice(place, 0, number)
    this.#latest = slot
    return slot
  }

  /** The oldest is no longer open. */
  removeOldest(): void {
    const number = this.#numbers.shift()
    if (number === undefined) return
    this.#byNumber.delete(number)
    if (this.#latest?.slot === number) this.#latest = undefined
  }

  /** Nothing refers to this closed slot any more. */
  reuse(slot: OpenSlot): void {
    this.#free.push(slot)
  }
}

/** How many of the newest slots are remembered. A source that lags by more is not continued. */
export const CLOSED_SLOTS = 1024

/** The newest closed slots, so that none is delivered twice when the shreds go on at lower slots: a source that lags goes on when another one ends. */
export class ClosedSlots {
  readonly #slots = new Float64Array(CLOSED_SLOTS).fill(-1)
  #version = -1

  add(slot: number): void {
    this.#slots[slot % CLOSED_SLOTS] = slot
  }

  has(slot: number): boolean {
    return this.#slots[slot % CLOSED_SLOTS] === slot
  }

  /** Slots of another version are other slots. True when this is another one. */
  setVersion(version: number): boolean {
    const isOther = version !== this.#version
    this.#version = version
    if (isOther) this.#slots.fill(-1)
    return isOther
  }
}
