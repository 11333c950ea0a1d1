import { WIRE_BYTES, WIRE_VARINT, WireReader } from '../../solana/transaction/wire-reader.ts'

const PREFIX_BYTES = 5
/** An incomplete message is held back up to this size, so that a lost node does not leave a client with half a message. A larger one flows. */
const HELD_BYTES_MAX = 64 * 1024

/** In which field of which kind of SubscribeUpdate the slot stands (geyser.proto). */
const SLOT_FIELD: Readonly<Record<number, number>> = { 2: 2, 3: 1, 4: 2, 5: 1, 7: 1, 8: 1, 10: 1 }

/** What can be passed on: first what was held back, then a view of what came last. */
export type PassedBytes = { readonly held: Uint8Array | undefined; readonly fresh: Uint8Array | undefined }

/**
 * Follows the messages in a stream of bytes without decoding them: gives out whole messages as they come, holds back the one that is incomplete,
 * and remembers the slot of the last one.
 */
export class UpdateFrames {
  /** The beginning of a message, copied: what it came in is used again. */
  #held: Buffer = NOTHING
  /** How much of a large message is still to come. */
  #through = 0
  #lastSlot: number | undefined
  #messages = 0

  /** The slot last seen at the end of a piece. */
  get lastSlot(): number | undefined {
    return this.#lastSlot
  }

  /** Messages given out, a large one when it began. */
  get messages(): number {
    return this.#messages
  }

  /** A large message was given out in part. */
  get isWithinMessage(): boolean {
    return this.#through > 0
  }

  push(bytes: Uint8Array): PassedBytes {
    const { held, from } = this.#complete(bytes)
    const to = this.#wholeTo(bytes, from)
    if (to < bytes.length) this.#held = Buffer.concat([this.#held, bytes.subarray(to)])
    return { held, fresh: to > from ? bytes.subarray(from, to) : undefined }
  }

  /** Completes the message held back, which is small, with the beginning of the piece; after it the piece is at a boundary. */
  #complete(bytes: Uint8Array): { held: Uint8Array | undefined; from: number } {
    const before = this.#held
    if (before.length === 0) return { held: undefined, from: 0 }
    const needed = before.length < PREFIX_BYTES ? PREFIX_BYTES - before.length : 0
    const prefix = needed === 0 ? before : Buffer.concat([before, bytes.subarray(0, needed)])
    const size = prefix.length < PREFIX_BYTES ? Number.POSITIVE_INFINITY : PREFIX_BYTES + lengthAt(prefix, 1)
    this.#held = NOTHING
    if (before.length + bytes.length < size) {
      if (size > HELD_BYTES_MAX && prefix.length >= PREFIX_BYTES) {
        this.#messages += 1
        this.#through = size - before.length
        return { held: before, from: 0 }
      }
      this.#held = before
      return { held: undefined, from: 0 }
    }
    const from = size - before.length
    const whole = Buffer.concat([before, bytes.subarray(0, from)], size)
    this.#messages += 1
    this.#noteSlot(whole, 0)
    return { held: whole, from }
  }

  /** Where the last whole message ends; where that of a large one stands that flows. */
  #wholeTo(bytes: Uint8Array, from: number): number {
    if (this.#held.length > 0) return from
    const through = Math.min(this.#through, bytes.length - from)
    this.#through -= through
    let at = from + through
    let last = -1
    while (bytes.length - at >= PREFIX_BYTES) {
      const size = PREFIX_BYTES + lengthAt(bytes, at + 1)
      if (bytes.length - at < size) {
        if (size <= HELD_BYTES_MAX) break
        this.#messages += 1
        this.#through = size - (bytes.length - at)
        at = bytes.length
        break
      }
      last = at
      at += size
      this.#messages += 1
    }
    if (last !== -1) this.#noteSlot(bytes, last)
    return at
  }

  #noteSlot(bytes: Uint8Array, at: number): void {
    // Compressed messages tell nothing without being opened.
    if (bytes[at] !== 0) return
    const from = at + PREFIX_BYTES
    this.#lastSlot = slotOf(bytes, from, from + lengthAt(bytes, at + 1)) ?? this.#lastSlot
  }
}

const NOTHING = Buffer.alloc(0)

function lengthAt(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) * 0x1000000 +
    (((bytes[at + 1] as number) << 16) | ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number))
  )
}

/** The slot of a SubscribeUpdate; pings and pongs have none. */
function slotOf(bytes: Uint8Array, from: number, to: number): number | undefined {
  const update = new WireReader(bytes, from, to)
  while (update.next()) {
    const field = SLOT_FIELD[update.field]
    if (field === undefined || update.wireType !== WIRE_BYTES) continue
    const content = update.inside()
    while (content.next()) if (content.field === field && content.wireType === WIRE_VARINT) return content.value
    return undefined
  }
  return undefined
}
