/** Counts upstream subscriptions, each for one of the owners that use it. */
export class UpstreamCharges {
  readonly #counts = new Map<string, number>()
  #total = 0

  get total(): number {
    return this.#total
  }

  of(owner: string): number {
    return this.#counts.get(owner) ?? 0
  }

  add(owner: string, change: 1 | -1): void {
    this.#total += change
    const count = this.of(owner) + change
    if (count > 0) this.#counts.set(owner, count)
    else this.#counts.delete(owner)
  }
}

/** The owners that use one upstream subscription: it counts for the first, and when that one has left, for the next. */
export class UpstreamCharge {
  readonly #charges: UpstreamCharges
  /** Subscribers by owner. */
  readonly #users = new Map<string, number>()
  #payer: string | undefined

  constructor(charges: UpstreamCharges) {
    this.#charges = charges
  }

  join(owner: string): void {
    this.#users.set(owner, (this.#users.get(owner) ?? 0) + 1)
    this.#settle()
  }

  leave(owner: string): void {
    const left = (this.#users.get(owner) ?? 1) - 1
    if (left > 0) this.#users.set(owner, left)
    else this.#users.delete(owner)
    this.#settle()
  }

  /** The upstream subscription has ended, although subscribers may still leave it. */
  end(): void {
    this.#users.clear()
    this.#settle()
  }

  #settle(): void {
    if (this.#payer !== undefined && this.#users.has(this.#payer)) return
    const [next] = this.#users.keys()
    if (this.#payer !== undefined) this.#charges.add(this.#payer, -1)
    if (next !== undefined) this.#charges.add(next, 1)
    this.#payer = next
  }
}
