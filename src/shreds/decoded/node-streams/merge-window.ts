import { signatureText, type UpstreamPlace } from './records.ts'

export type MergeWindowOptions = {
  /** Slots behind the newest one that are remembered. */
  readonly slotsMax: number
  /** Memory for what is remembered. */
  readonly bytesMax: number
}

/**
 * `void`: of a data set that a change of the parent has made void. `late`: of a slot that is not remembered any more. `full`: there is no memory to
 * remember it.
 */
export type UpstreamOutcome = 'first' | 'duplicate' | 'void' | 'late' | 'full'

type Entry = {
  /** Start of its data set; undefined where the node does not name it. */
  readonly startIndex: number | undefined
  /**
   * Above zero where the shreds had the transaction first, below zero where a node had it first and the shreds have not had it yet; zero after
   * both.
   */
  arrivalNanos: number
}

type Slot = {
  /** By signature, and by signature and start index for further data sets with the same transaction. */
  readonly entries: Map<string, Entry>
  /** With an arrival below zero. */
  nodeOnly: number
  /** Data sets that end here or before are void. */
  voidBefore: number
}

/** About what an entry of a map takes with its text. */
const ENTRY_BYTES = 200

/**
 * Which transactions of the newest slots were delivered, and from which source, so that each comes once for every data set that contains it: after a
 * change of the parent the leader may send a transaction again that is void in the data set before. What only a node has delivered stays
 * remembered until its slot leaves the window, because the shreds may still give it; the rest is forgotten earlier when memory is short, and then
 * nothing of a node is taken for that slot any more.
 */
export class MergeWindow {
  readonly #slotsMax: number
  readonly #entriesMax: number
  readonly #slots = new Map<number, Slot>()
  #entries = 0
  #newest = -1
  /** Nothing of a node is used for slots below this one. */
  #floor = 0
  /** The newest slot that was forgotten while only a node had delivered a part of it. */
  #lastForgotten = -1
  /** Seconds by which a source was first, since the last call of `takeLeads`. */
  #leads: { own: number[]; upstream: number[] } = { own: [], upstream: [] }

  constructor({ slotsMax, bytesMax }: MergeWindowOptions) {
    this.#slotsMax = slotsMax
    this.#entriesMax = Math.floor(bytesMax / ENTRY_BYTES)
  }

  /** Nothing of a node is used for slots below this one. */
  setFloor(slot: number): void {
    this.#floor = Math.max(this.#floor, slot)
  }

  /** It is not known which transactions of the slot a node has delivered. */
  isForgotten(slot: number): boolean {
    return slot <= this.#lastForgotten
  }

  /** Nothing of a node is used for data sets of the slot that end at this shred or before it. */
  setVoidBefore(slot: number, index: number): void {
    this.#advance(slot)
    if (slot >= this.#floor) this.#slotOf(slot).voidBefore = index
  }

  /** Whether a transaction of the shreds is to be delivered. */
  takeOwn({ slot, startIndex, arrivalNanos }: OwnPlace, signature: Uint8Array): boolean {
    this.#advance(slot)
    const known = this.#slots.get(slot)
    const key = keyOf(known, signature, startIndex)
    const entry = known?.entries.get(key)
    if (known === undefined || entry === undefined) {
      if (slot >= this.#floor && this.#makeRoom() && slot >= this.#floor) this.#add(slot, key, startIndex, arrivalNanos)
      return true
    }
    if (entry.arrivalNanos >= 0) return true
    this.#lead('upstream', arrivalNanos + entry.arrivalNanos)
    entry.arrivalNanos = 0
    known.nodeOnly -= 1
    return false
  }

  takeUpstream({ slot, startIndex, endIndex, arrivalNanos }: UpstreamPlace, signature: Uint8Array): UpstreamOutcome {
    this.#advance(slot)
    if (slot < this.#floor) return 'late'
    // Older nodes do not name the data set.
    const start = endIndex > startIndex ? startIndex : undefined
    const known = this.#slots.get(slot)
    if (known !== undefined && start !== undefined && endIndex <= known.voidBefore) return 'void'
    const key = keyOf(known, signature, start)
    const entry = known?.entries.get(key)
    if (entry !== undefined) {
      if (entry.arrivalNanos > 0) {
        this.#lead('own', arrivalNanos - entry.arrivalNanos)
        entry.arrivalNanos = 0
      }
      return 'duplicate'
    }
    if (!this.#makeRoom()) return 'full'
    if (slot < this.#floor) return 'late'
    this.#add(slot, key, start, -arrivalNanos)
    return 'first'
  }

  /** Transactions that only a node has delivered. */
  nodeOnly(slot: number): number {
    return this.#slots.get(slot)?.nodeOnly ?? 0
  }

  takeLeads(): { readonly own: readonly number[]; readonly upstream: readonly number[] } {
    const taken = this.#leads
    this.#leads = { own: [], upstream: [] }
    return taken
  }

  #add(slot: number, key: string, startIndex: number | undefined, arrivalNanos: number): void {
    const known = this.#slotOf(slot)
    // Zero has another meaning.
    known.entries.set(key, { startIndex, arrivalNanos: arrivalNanos || 1 })
    if (arrivalNanos < 0) known.nodeOnly += 1
    this.#entries += 1
  }

  #slotOf(slot: number): Slot {
    let known = this.#slots.get(slot)
    if (known === undefined) {
      known = { entries: new Map(), nodeOnly: 0, voidBefore: 0 }
      this.#slots.set(slot, known)
    }
    return known
  }

  #advance(slot: number): void {
    if (slot <= this.#newest) return
    this.#newest = slot
    const floor = slot - this.#slotsMax
    this.setFloor(floor)
    for (const [number, { entries, nodeOnly }] of this.#slots) {
      if (number >= floor) continue
      this.#slots.delete(number)
      this.#entries -= entries.size
      if (nodeOnly > 0) this.#lastForgotten = Math.max(this.#lastForgotten, number)
    }
  }

  /** Forgets old slots until there is room for an entry; false where all are to be remembered. */
  #makeRoom(): boolean {
    while (this.#entries >= this.#entriesMax) {
      let oldest: number | undefined
      for (const [number, { entries, nodeOnly }] of this.#slots)
        if (nodeOnly < entries.size && (oldest === undefined || number < oldest)) oldest = number
      if (oldest === undefined) return false
      this.#forgetOwn(oldest)
    }
    return true
  }

  #forgetOwn(slot: number): void {
    this.setFloor(slot + 1)
    const known = this.#slots.get(slot)
    for (const [key, { arrivalNanos }] of known?.entries ?? []) {
      if (arrivalNanos < 0) continue
      known?.entries.delete(key)
      this.#entries -= 1
    }
  }

  #lead(source: 'own' | 'upstream', nanos: number): void {
    const leads = this.#leads[source]
    if (leads.length < LEADS_MAX) leads.push(Math.max(0, nanos) / 1e9)
  }
}

type OwnPlace = Pick<UpstreamPlace, 'slot' | 'startIndex' | 'arrivalNanos'>

/** Leads kept for the next report; further ones are not in the distribution. */
const LEADS_MAX = 512

/** Key of the transaction in the data set that begins there. One of a data set that is not known is the same wherever it is. */
function keyOf(slot: Slot | undefined, signature: Uint8Array, startIndex: number | undefined): string {
  const key = signatureText(signature)
  const first = slot?.entries.get(key)?.startIndex
  return first === undefined || startIndex === undefined || first === startIndex ? key : key + startIndex
}
