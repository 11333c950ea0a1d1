import { signatureText } from './records.ts'

export type MergeWindowOptions = {
  /** Slots behind the newest one that are remembered. */
  readonly slotsMax: number
  /** Memory for what is remembered. */
  readonly bytesMax: number
}

/** `late`: of a slot that is not remembered any more. `full`: there is no memory to remember it. */
export type UpstreamOutcome = 'first' | 'duplicate' | 'late' | 'full'

type Slot = {
  /**
   * By signature: the arrival, above zero where the shreds had the transaction first, below zero where a node had it first and the shreds have
   * not had it yet; zero after both.
   */
  readonly arrivals: Map<string, number>
  /** Below zero. */
  nodeOnly: number
}

/** About what an entry of a map takes with its text. */
const ENTRY_BYTES = 160

/**
 * Which transactions of the newest slots were delivered, and from which source, so that each comes once. What only a node has delivered stays
 * remembered until its slot leaves the window, because the shreds may still give it; the rest is forgotten earlier when memory is short, and then
 * nothing of a node is taken for that slot any more.
 */
export class MergeWindow {
  readonly #slotsMax: number
  readonly #entriesMax: number
  readonly #slots = new Map<number, Slot>()
  #entries = 0
  #newest = -1
  /** Of a node nothing is taken for slots below. */
  #floor = 0
  /** The newest slot that was forgotten while only a node had delivered a part of it. */
  #lastForgotten = -1
  /** Seconds by which a source was first, since the last call of `takeLeads`. */
  #leads: { own: number[]; upstream: number[] } = { own: [], upstream: [] }

  constructor({ slotsMax, bytesMax }: MergeWindowOptions) {
    this.#slotsMax = slotsMax
    this.#entriesMax = Math.floor(bytesMax / ENTRY_BYTES)
  }

  /** Of a node nothing is taken for slots below. */
  setFloor(slot: number): void {
    this.#floor = Math.max(this.#floor, slot)
  }

  /** It is not known which transactions of the slot a node has delivered. */
  isForgotten(slot: number): boolean {
    return slot <= this.#lastForgotten
  }

  /** Whether a transaction of the shreds is to be delivered. */
  takeOwn(slot: number, signature: Uint8Array, arrivalNanos: number): boolean {
    this.#advance(slot)
    const key = signatureText(signature)
    const known = this.#slots.get(slot)
    const arrival = known?.arrivals.get(key)
    if (arrival === undefined) {
      if (slot >= this.#floor && this.#makeRoom() && slot >= this.#floor) this.#add(slot, key, arrivalNanos)
      return true
    }
    if (arrival >= 0) return true
    known?.arrivals.set(key, 0)
    if (known !== undefined) known.nodeOnly -= 1
    this.#lead('upstream', arrivalNanos + arrival)
    return false
  }

  takeUpstream(slot: number, signature: Uint8Array, arrivalNanos: number): UpstreamOutcome {
    this.#advance(slot)
    if (slot < this.#floor) return 'late'
    const key = signatureText(signature)
    const known = this.#slots.get(slot)
    const arrival = known?.arrivals.get(key)
    if (arrival !== undefined) {
      if (arrival > 0) {
        known?.arrivals.set(key, 0)
        this.#lead('own', arrivalNanos - arrival)
      }
      return 'duplicate'
    }
    if (!this.#makeRoom()) return 'full'
    if (slot < this.#floor) return 'late'
    this.#add(slot, key, -arrivalNanos)
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

  #add(slot: number, key: string, arrival: number): void {
    let known = this.#slots.get(slot)
    if (known === undefined) {
      known = { arrivals: new Map(), nodeOnly: 0 }
      this.#slots.set(slot, known)
    }
    // Zero has another meaning.
    known.arrivals.set(key, arrival || 1)
    if (arrival < 0) known.nodeOnly += 1
    this.#entries += 1
  }

  #advance(slot: number): void {
    if (slot <= this.#newest) return
    this.#newest = slot
    const floor = slot - this.#slotsMax
    this.setFloor(floor)
    for (const [number, { arrivals, nodeOnly }] of this.#slots) {
      if (number >= floor) continue
      this.#slots.delete(number)
      this.#entries -= arrivals.size
      if (nodeOnly > 0) this.#lastForgotten = Math.max(this.#lastForgotten, number)
    }
  }

  /** Forgets old slots until there is room for an entry; false where all are to be remembered. */
  #makeRoom(): boolean {
    while (this.#entries >= this.#entriesMax) {
      let oldest: number | undefined
      for (const [number, { arrivals, nodeOnly }] of this.#slots)
        if (nodeOnly < arrivals.size && (oldest === undefined || number < oldest)) oldest = number
      if (oldest === undefined) return false
      this.#forgetOwn(oldest)
    }
    return true
  }

  #forgetOwn(slot: number): void {
    this.setFloor(slot + 1)
    const known = this.#slots.get(slot)
    for (const [key, arrival] of known?.arrivals ?? []) {
      if (arrival < 0) continue
      known?.arrivals.delete(key)
      this.#entries -= 1
    }
  }

  #lead(source: 'own' | 'upstream', nanos: number): void {
    const leads = this.#leads[source]
    if (leads.length < LEADS_MAX) leads.push(Math.max(0, nanos) / 1e9)
  }
}

/** Leads kept for the next report; further ones are not in the distribution. */
const LEADS_MAX = 512
