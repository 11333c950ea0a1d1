import type { Duplex } from 'node:stream'

/**
 * Most bytes of one write. A socket reports a write only when all of its bytes have left, so this is also the least that a client must read within
 * the stall time.
 */
const PIECE_BYTES = 256 * 1024

/** Writes to a socket in pieces, so that it is visible that a client reads a large message slowly. */
export class PieceWriter {
  readonly #socket: Duplex
  /** Not yet given to the socket. While there is any, the socket needs to drain. */
  #rest: Buffer | undefined
  /** To be disposed of when all bytes have left. */
  #held: Disposable | undefined

  constructor(socket: Duplex) {
    this.#socket = socket
  }

  /** Part of a message is not given to the socket yet: nothing else may be written. */
  get isSending(): boolean {
    return this.#rest !== undefined
  }

  get restBytes(): number {
    return this.#rest?.length ?? 0
  }

  /** Called only while the socket does not need to drain. False when it does now. */
  write(bytes: Buffer, held?: Disposable): boolean {
    this.#rest = bytes
    this.#held = held
    return this.writeNext()
  }

  /** Writes pieces until the socket needs to drain. False when it does now. */
  writeNext(): boolean {
    let isClear = true
    while (this.#rest !== undefined && isClear) {
      const bytes = this.#rest
      const isLast = bytes.length <= PIECE_BYTES
      this.#rest = isLast ? undefined : bytes.subarray(PIECE_BYTES)
      isClear = this.#socket.write(isLast ? bytes : bytes.subarray(0, PIECE_BYTES))
    }
    if (isClear) this.#release()
    return isClear
  }

  /** Gives the rest to the socket at once: what is written next must not come within a frame. */
  finish(): void {
    const rest = this.#rest
    this.#rest = undefined
    if (rest !== undefined) this.#socket.write(rest)
  }

  clear(): void {
    this.#rest = undefined
    this.#release()
  }

  #release(): void {
    this.#held?.[Symbol.dispose]()
    this.#held = undefined
  }
}
