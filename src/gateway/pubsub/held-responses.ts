import type { HeldBytes, HeldBytesLimit } from '../../platform/http/held-bytes.ts'

/** All responses to one message together. Less than the send buffer of a client: one reply alone must not make it a slow client. */
export const RESPONSE_BYTES_MAX = 2 * 1024 * 1024

export type ResponseLimit = 'responseBytes' | HeldBytesLimit

/**
 * The responses of nodes to the calls of one message. Those of a batch stay in memory until the slowest has arrived, and the reply until its client has
 * read it, so they count as held bytes until it has left the process.
 */
export class HeldResponses implements Disposable {
  /** The reply waits for several responses. */
  readonly isBatch: boolean
  readonly #heldBytes: HeldBytes
  readonly #owner: string
  #bytes = 0
  /** Calls of a batch that has failed may still be under way. */
  #isOver = false

  constructor(heldBytes: HeldBytes, { owner, isBatch }: { readonly owner: string; readonly isBatch: boolean }) {
    this.isBatch = isBatch
    this.#heldBytes = heldBytes
    this.#owner = owner
  }

  /** Undefined where the bytes are held now; else the limit that they would exceed. */
  hold(bytes: number): ResponseLimit | undefined {
    if (this.#isOver || this.#bytes + bytes > RESPONSE_BYTES_MAX) return 'responseBytes'
    if (!this.#heldBytes.acquire(this.#owner, bytes)) return this.#heldBytes.exceeded(this.#owner, bytes) ?? 'heldBytes'
    this.#bytes += bytes
    return undefined
  }

  /** Releases bytes of a response that was dropped. */
  release(bytes: number): void {
    if (this.#isOver || bytes === 0) return
    this.#bytes -= bytes
    this.#heldBytes.release(this.#owner, bytes)
  }

  /** Releases all; nothing is held from now on. */
  [Symbol.dispose](): void {
    this.release(this.#bytes)
    this.#isOver = true
  }
}
