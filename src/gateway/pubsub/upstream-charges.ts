/** Counts upstream subscriptions, each for one of the customers' subscriptions that use it. */
export class UpstreamCharges {
  readonly #counts = new Map<string, number>()
  #total = 0

  get total(): number {
    return this.#total
  }

  of(subscriptionId: string): number {
    return this.#counts.get(subscriptionId) ?? 0
  }

  add(subscriptionId: string, change: 1 | -1): void {
    this.#total += change
    const count = this.of(subscriptionId) + change
    if (count > 0) this.#counts.set(subscriptionId, count)
    else this.#counts.delete(subscriptionId)
  }
}

/** The customers' subscriptions that use one upstream subscription: it counts for the first, and when that one has left, for the next. */
export class UpstreamCharge {
  readonly #charges: UpstreamCharges
  /** Subscribers by subscription. */
  readonly #users = new Map<string, number>()
  #payer: string | undefined

  constructor(charges: UpstreamCharges) {
    this.#charges = charges
  }

  join(subscriptionId: string): void {
    this.#users.set(subscriptionId, (this.#users.get(subscriptionId) ?? 0) + 1)
    this.#settle()
  }

  leave(subscriptionId: string): void {
    const left = (this.#users.get(subscriptionId) ?? 1) - 1
    if (left > 0) this.#users.set(subscriptionId, left)
    else this.#users.delete(subscriptionId)
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
