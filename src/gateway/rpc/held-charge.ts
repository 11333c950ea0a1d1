import type { HeldBytes, HeldBytesLimit } from '../../platform/http/held-bytes.ts'

/** Charges the bytes that one response holds to its owner. */
export class HeldCharge {
  readonly #heldBytes: HeldBytes
  readonly #owner: string
  #bytes = 0
  #waiting: { cancel(): void } | undefined

  constructor(heldBytes: HeldBytes, owner: string) {
    this.#heldBytes = heldBytes
    this.#owner = owner
  }

  get isWaiting(): boolean {
    return this.#waiting !== undefined
  }

  /** Changes the charge to so many bytes; false where that would exceed a limit. While it waits, it takes no more. */
  update(bytes: number): boolean {
    const more = bytes - this.#bytes
    if (more < 0) {
      this.#heldBytes.release(this.#owner, -more)
      this.#bytes = bytes
    } else if (more > 0 && this.#waiting === undefined) {
      if (!this.#heldBytes.acquire(this.#owner, more)) return false
      this.#bytes = bytes
    }
    return true
  }

  /** So many bytes will not fit later either. */
  exceedsOwnerMax(bytes: number): boolean {
    return bytes > this.#heldBytes.limits.heldBytesPerSubscription
  }

  /** Waits until so many bytes are charged; `onSettled` gets the limit where they are not in time. */
  wait(bytes: number, onSettled: (limit: HeldBytesLimit | undefined) => void): void {
    const more = bytes - this.#bytes
    const limit = this.#heldBytes.exceeded(this.#owner, more) ?? 'heldBytes'
    this.#waiting = this.#heldBytes.acquireLater(this.#owner, more, (isAcquired) => {
      this.#waiting = undefined
      if (isAcquired) this.#bytes += more
      onSettled(isAcquired ? undefined : limit)
    })
  }

  stopWaiting(): void {
    this.#waiting?.cancel()
    this.#waiting = undefined
  }

  /** Releases all of it. */
  release(): void {
    this.stopWaiting()
    if (this.#bytes > 0) this.#heldBytes.release(this.#owner, this.#bytes)
    this.#bytes = 0
  }
}
