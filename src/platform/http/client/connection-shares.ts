/** The calls of one owner in a pool. */
export type ConnectionShare = { readonly owner: string; busy: number; waiting: number }

/** From this share in use on, connections are scarce: */
const SCARCE_SHARE = 3 / 4
/** then one owner gets no more than this share of them. */
const OWNER_SHARE = 1 / 4

/** Counts the calls of each owner, so that one whose responses are read slowly leaves connections for the others. */
export class ConnectionShares {
  readonly #shares = new Map<string, ConnectionShare>()

  of(owner: string): ConnectionShare {
    const known = this.#shares.get(owner)
    if (known !== undefined) return known
    const share = { owner, busy: 0, waiting: 0 }
    this.#shares.set(owner, share)
    return share
  }

  /** How many of `waiting` calls can be sent over further connections, in whatever order they come. */
  sendable(waiting: number, busy: number, max: number): number {
    const unlimited = Math.ceil(max * SCARCE_SHARE) - busy
    if (unlimited >= waiting) return waiting
    let bound = 0
    for (const share of this.#shares.values()) {
      const free = Math.max(0, Math.ceil(max * OWNER_SHARE) - share.busy)
      bound += Math.max(0, share.waiting - free)
    }
    return Math.max(unlimited, waiting - bound)
  }

  /** To be called when an owner may have no call any more. */
  forgetUnused({ owner, busy, waiting }: ConnectionShare): void {
    if (busy + waiting === 0) this.#shares.delete(owner)
  }
}

/** Whether an owner that holds `own` of `max`, of which `used` are in use, may have one more: a connection, or a place in the queue for one. */
export function isWithinShare(own: number, used: number, max: number): boolean {
  return used < max * SCARCE_SHARE || own < Math.ceil(max * OWNER_SHARE)
}
