/** Protobuf wire types, without groups: no message here has any. */
export const WIRE_VARINT = 0
export const WIRE_BYTES = 2
export const WIRE_FIXED64 = 1
export const WIRE_FIXED32 = 5

/** A varint has ten bytes at most, the last of which holds one bit. */
const VARINT_BYTES_MAX = 10
const TAG_MAX = 0xffff_ffff

/**
 * Reads the fields of one protobuf message in wire order; a nested message has its own reader. Decoders disagree about a repeated occurrence of
 * a singular field, so fields are counted on the wire, which is never less than what a decoder sees. They also disagree about varints that are
 * longer than needed or too large, so a message with such a varint is broken.
 */
export class WireReader {
  readonly #bytes: Uint8Array
  readonly #end: number
  #at: number
  /** The message cannot be read to its end. */
  isBroken = false
  field = 0
  wireType = 0
  /** The value of a varint field, exact up to 2^53. */
  value = 0
  /** The range of the content of a bytes field, and of the bytes of a varint. */
  from = 0
  to = 0

  constructor(bytes: Uint8Array, from = 0, to: number = bytes.length) {
    this.#bytes = bytes
    this.#at = from
    this.#end = to
  }

  /** Moves to the next field; false at the end, or when the message is broken. */
  next(): boolean {
    if (this.isBroken || this.#at >= this.#end) return false
    const tag = this.#varint()
    this.field = Math.floor(tag / 8)
    this.wireType = tag % 8
    if (this.field === 0 || tag > TAG_MAX) this.isBroken = true
    switch (this.wireType) {
      case WIRE_VARINT:
        this.from = this.#at
        this.value = this.#varint()
        this.to = this.#at
        break
      case WIRE_BYTES:
        this.#skip(this.#varint())
        break
      case WIRE_FIXED64:
        this.#skip(8)
        break
      case WIRE_FIXED32:
        this.#skip(4)
        break
      default:
        this.isBroken = true
    }
    return !this.isBroken
  }

  /** The value of a varint field, exact up to 2^64. */
  get wideValue(): bigint {
    let value = 0n
    for (let at = this.to - 1; at >= this.from; at--) value = (value << 7n) | BigInt((this.#bytes[at] as number) & 0x7f)
    return value
  }

  /** A reader for this field as a nested message. */
  inside(): WireReader {
    return new WireReader(this.#bytes, this.from, this.to)
  }

  #skip(count: number): void {
    this.from = this.#at
    this.to = this.#at + count
    if (this.to > this.#end) this.isBroken = true
    this.#at = this.to
  }

  #varint(): number {
    let value = 0
    let scale = 1
    for (let count = 0; count < VARINT_BYTES_MAX && this.#at < this.#end; count++) {
      const byte = this.#bytes[this.#at++] as number
      value += (byte & 0x7f) * scale
      if (byte < 0x80) {
        const isLonger = byte === 0 && count > 0
        const isTooLarge = byte > 1 && count === VARINT_BYTES_MAX - 1
        if (isLonger || isTooLarge) this.isBroken = true
        return value
      }
      scale *= 128
    }
    this.isBroken = true
    return 0
  }
}
