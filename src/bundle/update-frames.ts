import { WIRE_BYTES, WIRE_VARINT, WireReader } from '../solana/wire-reader.ts'

const PREFIX_BYTES = 5
/** An incomplete message is held back up to this size, so that a lost node does not leave a client with half a message. A larger one flows. */
const HELD_BYTES_MAX = 64 * 1024

/** In which field of which kind of SubscribeUpdate the slot stands (geyser.proto). */
const SLOT_FIELD: Readonly<Record<number, number>> = { 2: 2, 3: 1, 4: 2, 5: 1, 7: 1, 8: 1, 10: 1 }

/**
 * Follows the messages in a stream of bytes without decoding them: collects what arrived at once, gives out whole messages, and remembers the slot
 * of the last one.
 */
export class UpdateFrames {
  #parts: Uint8Array[] = []
  /** How much of a large message is still to come. */
  #through = 0
  #lastSlot: number | undefined
  #messages = 0

  get isEmpty(): boolean {
    return this.#parts.length === 0
  }

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

  push(bytes: Uint8Array): void {
    this.#parts.push(bytes)
  }

  /** All that can be passed on now, as one piece; undefined when that is nothing. */
  take(): Uint8Array | undefined {
    const [first] = this.#parts
    if (first === undefined) return undefined
    const bytes = this.#parts.length === 1 ? first : Buffer.concat(this.#parts)
    const whole = this.#wholeBytes(bytes)
    this.#parts = whole === bytes.length ? [] : [bytes.subarray(whole)]
    return whole === 0 ? undefined : bytes.subarray(0, whole)
  }

  #wholeBytes(bytes: Uint8Array): number {
    let at = Math.min(this.#through, bytes.length)
    this.#through -= at
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
    // Compressed messages tell nothing without being opened.
    if (last !== -1 && bytes[last] === 0) {
      const from = last + PREFIX_BYTES
      this.#lastSlot = slotOf(bytes, from, from + lengthAt(bytes, last + 1)) ?? this.#lastSlot
    }
    return at
  }
}

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
