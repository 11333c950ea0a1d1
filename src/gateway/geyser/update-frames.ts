import { WIRE_BYTES, WIRE_VARINT, WireReader } from '../../solana/geyser/wire-reader.ts'
import type { SeenBanks } from './seen-banks.ts'
import { UPDATE_FIELDS } from './update-fields.ts'

const PREFIX_BYTES = 5
/** An incomplete message up to this size is held, so that a lost node does not leave a client with a partial message. A larger one is streamed. */
const HELD_BYTES_MAX = 64 * 1024
/** Names of filters come before the slot of a streamed message. */
const START_BYTES = 4096

/** Bytes to relay: first those that were held, then a view of the new ones. */
export type PassedBytes = { readonly held: Uint8Array | undefined; readonly fresh: Uint8Array | undefined }

/**
 * Finds the message boundaries in a byte stream without decoding: releases complete messages, holds an incomplete one, and keeps the slot of
 * the last one.
 */
export class UpdateFrames {
  /** The beginning of a message, copied, because its buffer is reused. */
  #held: Buffer = NOTHING
  /** Bytes of a streamed message that are still to come. */
  #streaming = 0
  #lastSlot: number | undefined
  #pieceSlot: number | undefined
  #hasUnread = false
  #messages = 0
  /** Set where the stream may move to another node. Streamed and compressed messages are not read. */
  readonly #banks: SeenBanks | undefined

  constructor(banks?: SeenBanks) {
    this.#banks = banks
  }

  /** The slot of the last complete message of a piece. */
  get lastSlot(): number | undefined {
    return this.#lastSlot
  }

  /** The slot that was read in the last piece. */
  get pieceSlot(): number | undefined {
    return this.#pieceSlot
  }

  /** The last piece has an update whose slot could not be read: it is compressed, or streamed and its slot is not at its beginning. */
  get hasUnread(): boolean {
    return this.#hasUnread
  }

  /** Messages released; a streamed one counts at its beginning. */
  get messages(): number {
    return this.#messages
  }

  /** A streamed message is incomplete. */
  get isWithinMessage(): boolean {
    return this.#streaming > 0
  }

  /** Any message is incomplete, held or streamed. */
  get isWithinAny(): boolean {
    return this.#streaming > 0 || this.#held.length > 0
  }

  push(bytes: Uint8Array): PassedBytes {
    this.#pieceSlot = undefined
    this.#hasUnread = false
    const { held, from } = this.#complete(bytes)
    const to = this.#releasedTo(bytes, from)
    if (to < bytes.length) this.#held = Buffer.concat([this.#held, bytes.subarray(to)])
    return { held, fresh: to > from ? bytes.subarray(from, to) : undefined }
  }

  /** Completes the held message with the beginning of the piece; the rest of the piece starts at a message boundary. */
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
        this.#streaming = size - before.length
        this.#readStart(Buffer.concat([before, bytes.subarray(0, START_BYTES)]), 0)
        return { held: before, from: 0 }
      }
      this.#held = before
      return { held: undefined, from: 0 }
    }
    const from = size - before.length
    const message = Buffer.concat([before, bytes.subarray(0, from)], size)
    this.#messages += 1
    this.#readSlot(message, 0)
    return { held: message, from }
  }

  /** The offset up to which the piece is released: the end of the last complete message, or of the piece where one is streamed. */
  #releasedTo(bytes: Uint8Array, from: number): number {
    if (this.#held.length > 0) return from
    const through = Math.min(this.#streaming, bytes.length - from)
    this.#streaming -= through
    let at = from + through
    const first = at
    let last = -1
    while (bytes.length - at >= PREFIX_BYTES) {
      const size = PREFIX_BYTES + lengthAt(bytes, at + 1)
      if (bytes.length - at < size) {
        if (size <= HELD_BYTES_MAX) break
        this.#messages += 1
        this.#streaming = size - (bytes.length - at)
        this.#readStart(bytes, at)
        at = bytes.length
        break
      }
      last = at
      this.#hasUnread ||= bytes[at] !== 0
      at += size
      this.#messages += 1
    }
    if (last === -1) return at
    this.#readSlot(bytes, last)
    // Where the node does not name banks, the last message of each piece is enough to notice when it begins to.
    if (this.#banks?.mayBeNamed === true) this.#readBanks(this.#banks, bytes, first, last)
    return at
  }

  /** Reads the banks of the complete messages between two offsets. */
  #readBanks(banks: SeenBanks, bytes: Uint8Array, from: number, to: number): void {
    for (let at = from; at < to; ) {
      const end = at + PREFIX_BYTES + lengthAt(bytes, at + 1)
      if (bytes[at] === 0) banks.note(bytes, at + PREFIX_BYTES, end)
      at = end
    }
  }

  #readSlot(bytes: Uint8Array, at: number): void {
    if (bytes[at] !== 0) {
      this.#hasUnread = true
      return
    }
    const from = at + PREFIX_BYTES
    const to = from + lengthAt(bytes, at + 1)
    this.#pieceSlot = slotOf(bytes, from, to) ?? this.#pieceSlot
    this.#lastSlot = this.#pieceSlot ?? this.#lastSlot
    this.#banks?.note(bytes, from, to)
  }

  /** Reads the slot of a message that is streamed. A block begins with its slot; an account has it behind its data. */
  #readStart(bytes: Uint8Array, at: number): void {
    const from = at + PREFIX_BYTES
    const slot = bytes[at] === 0 ? slotOf(bytes, from, from + lengthAt(bytes, at + 1)) : undefined
    this.#pieceSlot = slot ?? this.#pieceSlot
    this.#hasUnread ||= slot === undefined
  }
}

const NOTHING = Buffer.alloc(0)

function lengthAt(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) * 0x1000000 +
    (((bytes[at + 1] as number) << 16) | ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number))
  )
}

/** The slot of a SubscribeUpdate, of which the end may be missing; pings and pongs have none, and a number that no chain reaches is none. */
function slotOf(bytes: Uint8Array, from: number, to: number): number | undefined {
  const update = new WireReader(bytes, from, to)
  while (update.next()) {
    const field = UPDATE_FIELDS[update.field]?.slot
    if (field === undefined || update.wireType !== WIRE_BYTES) continue
    const content = update.inside()
    while (content.next()) {
      if (content.field === field && content.wireType === WIRE_VARINT)
        return Number.isSafeInteger(content.value) ? content.value : undefined
    }
    return undefined
  }
  return undefined
}
