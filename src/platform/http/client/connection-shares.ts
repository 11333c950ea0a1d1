/** The calls of one owner in a pool. Those without an owner are together, and have no limit. */
export type ConnectionShare<Call> = {
  readonly owner: string | undefined
  busy: number
  /** Calls without a connection yet, in order of arrival. */
  readonly waiting: Set<Call>
}

/** From this share in use on, connections are scarce: */
const SCARCE_SHARE = 3 / 4
/** then one owner gets no more than this share of them. */
const OWNER_SHARE = 1 / 4

/** Counts the calls of each owner, so that one whose responses are read slowly leaves connections for the others. */
export class ConnectionShares<Call extends { readonly share: ConnectionShare<Call> }> {
  readonly #connectionsMax: number
  readonly #waitingMax: number
  readonly #shares = new Map<string | undefined, ConnectionShare<Call>>()
  /** Those with waiting calls, in the order in which they are served. Few of them can be at their limit. */
  readonly #rotation = new Set<ConnectionShare<Call>>()
  #busy = 0
  #waiting = 0

  constructor(max: { readonly connectionsMax: number; readonly waitingMax: number }) {
    this.#connectionsMax = max.connectionsMax
    this.#waitingMax = max.waitingMax
  }

  get busy(): number {
    return this.#busy
  }

  get waiting(): number {
    return this.#waiting
  }

  of(owner: string | undefined): ConnectionShare<Call> {
    const known = this.#shares.get(owner)
    if (known !== undefined) return known
    const share = { owner, busy: 0, waiting: new Set<Call>() }
    this.#shares.set(owner, share)
    return share
  }

  /** To be called when an owner may have no call any more. */
  forgetUnused({ owner, busy, waiting }: ConnectionShare<Call>): void {
    if (owner !== undefined && busy + waiting.size === 0) this.#shares.delete(owner)
  }

  /** Whether a call may take a connection. */
  mayBeSent({ owner, busy }: ConnectionShare<Call>): boolean {
    return owner === undefined || isWithinShare(busy, this.#busy, this.#connectionsMax)
  }

  /** Whether a call may wait for a connection, where there is a place. */
  mayWait({ owner, waiting }: ConnectionShare<Call>): boolean {
    return owner === undefined || isWithinShare(waiting.size, this.#waiting, this.#waitingMax)
  }

  send(share: ConnectionShare<Call>): void {
    this.#busy += 1
    share.busy += 1
  }

  release(share: ConnectionShare<Call>): void {
    this.#busy -= 1
    share.busy -= 1
    this.forgetUnused(share)
  }

  wait(call: Call): void {
    const { share } = call
    this.#waiting += 1
    share.waiting.add(call)
    this.#rotation.add(share)
  }

  /** False where it did not wait. */
  stopWaiting(call: Call): boolean {
    const { share } = call
    if (!share.waiting.delete(call)) return false
    this.#waiting -= 1
    if (share.waiting.size === 0) this.#rotation.delete(share)
    this.forgetUnused(share)
    return true
  }

  /** The waiting call that takes the next connection: the first of the next owner below its limit. */
  next(): Call | undefined {
    for (const share of this.#rotation) {
      if (!this.mayBeSent(share)) continue
      this.#rotation.delete(share)
      this.#rotation.add(share)
      const [call] = share.waiting
      return call
    }
    return undefined
  }

  /** All calls that wait. */
  *allWaiting(): Generator<Call> {
    for (const { waiting } of this.#rotation) yield* waiting
  }

  /** How many waiting calls can be sent over further connections, in whatever order they come. */
  get sendable(): number {
    const unlimited = Math.ceil(this.#connectionsMax * SCARCE_SHARE) - this.#busy
    if (unlimited >= this.#waiting) return this.#waiting
    const ownMax = Math.ceil(this.#connectionsMax * OWNER_SHARE)
    let bound = 0
    for (const { owner, busy, waiting } of this.#rotation)
      if (owner !== undefined) bound += Math.max(0, waiting.size - Math.max(0, ownMax - busy))
    return Math.max(unlimited, this.#waiting - bound)
  }
}

/** Whether an owner that holds `own` of `max`, of which `used` are in use, may have one more. */
function isWithinShare(own: number, used: number, max: number): boolean {
  return used < max * SCARCE_SHARE || own < Math.ceil(max * OWNER_SHARE)
}
