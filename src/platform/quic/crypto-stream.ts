import type { Carried } from './recovery.ts'
import { CODES, QuicError } from './wire.ts'

/** Handshake bytes buffered until those before them have arrived. */
const HELD_BYTES_MAX = 64 * 1024
const HELD_PIECES_MAX = 128
const MESSAGE_BYTES_MAX = 64 * 1024

/** The CRYPTO stream of one encryption level: sends in pieces, resends lost ones, and reorders received bytes. */
export class CryptoStream {
  #outgoing: { readonly offset: number; readonly data: Uint8Array; isAcked: boolean }[] = []
  #toSend: { readonly offset: number; readonly data: Uint8Array; isAcked: boolean }[] = []
  #sentBytes = 0
  #held = new Map<number, Uint8Array>()
  #heldBytes = 0
  #incoming: Uint8Array = new Uint8Array(0)
  #readBytes = 0

  /** Queues bytes in pieces that fit a packet. */
  write(bytes: Uint8Array, pieceBytesMax: number): void {
    for (let at = 0; at < bytes.length; at += pieceBytesMax) {
      const data = bytes.subarray(at, at + pieceBytesMax)
      const piece = { offset: this.#sentBytes, data, isAcked: false }
      this.#sentBytes += data.length
      this.#outgoing.push(piece)
      this.#toSend.push(piece)
    }
  }

  get hasToSend(): boolean {
    return this.#toSend.some(({ isAcked }) => !isAcked)
  }

  /** The next piece if it is not larger than the room there is. */
  next(
    roomBytes: number,
  ): { readonly offset: number; readonly data: Uint8Array; readonly carried: Carried } | undefined {
    while (this.#toSend[0]?.isAcked === true) this.#toSend.shift()
    const piece = this.#toSend[0]
    if (piece === undefined || piece.data.length + 12 > roomBytes) return undefined
    this.#toSend.shift()
    const carried: Carried = {
      acked: () => {
        piece.isAcked = true
      },
      lost: () => {
        if (!piece.isAcked && !this.#toSend.includes(piece)) this.#toSend.push(piece)
      },
    }
    return { offset: piece.offset, data: piece.data, carried }
  }

  /** Resends everything that is not acknowledged, as after a Retry. */
  resendAll(): void {
    this.#toSend = this.#outgoing.filter(({ isAcked }) => !isAcked)
  }

  /** Takes received bytes; yields handshake messages as they become complete. */
  *receive(offset: number, data: Uint8Array): Generator<{ readonly type: number; readonly message: Uint8Array }> {
    if (offset + data.length > this.#readBytes + HELD_BYTES_MAX) {
      throw new QuicError(CODES.cryptoBufferExceeded, 'too many handshake bytes out of order')
    }
    if (offset + data.length <= this.#readBytes) return
    const before = this.#held.get(offset)
    if (before === undefined || before.length < data.length) {
      this.#heldBytes += data.length - (before?.length ?? 0)
      if (this.#heldBytes > 2 * HELD_BYTES_MAX)
        throw new QuicError(CODES.cryptoBufferExceeded, 'too many handshake bytes')
      if (this.#held.size >= HELD_PIECES_MAX)
        throw new QuicError(CODES.cryptoBufferExceeded, 'too many pieces of the handshake')
      this.#held.set(offset, Uint8Array.from(data))
    }
    this.#joinHeld()
    yield* this.#messages()
  }

  #joinHeld(): void {
    for (let moved = true; moved; ) {
      moved = false
      for (const [offset, data] of this.#held) {
        if (offset > this.#readBytes) continue
        this.#held.delete(offset)
        this.#heldBytes -= data.length
        const fresh = data.subarray(Math.min(data.length, this.#readBytes - offset))
        if (fresh.length === 0) continue
        this.#incoming = Buffer.concat([this.#incoming, fresh])
        this.#readBytes += fresh.length
        moved = true
      }
    }
  }

  *#messages(): Generator<{ readonly type: number; readonly message: Uint8Array }> {
    while (this.#incoming.length >= 4) {
      const [type = 0, high = 0, middle = 0, low = 0] = this.#incoming
      const length = 4 + ((high << 16) | (middle << 8) | low)
      if (length > MESSAGE_BYTES_MAX) throw new QuicError(CODES.cryptoBufferExceeded, 'a handshake message is too long')
      if (this.#incoming.length < length) return
      const message = this.#incoming.subarray(0, length)
      this.#incoming = this.#incoming.subarray(length)
      yield { type, message }
    }
  }
}
