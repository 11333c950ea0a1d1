import type { Buffer } from 'node:buffer'

/** The bytes end in the middle of a field, or have a tag or wire type that protobuf does not define. */
export class WireFault extends Error {
  override readonly name = 'WireFault'
}

const WIRE_VARINT = 0
const WIRE_FIXED64 = 1
const WIRE_BYTES = 2
const WIRE_FIXED32 = 5
/** A varint has ten bytes at most. */
const VARINT_BITS_MAX = 70

/**
 * Reads the fields of one protobuf message in order: call `next`, then exactly one other method for the current field. For large messages of
 * a known schema, where an object for every part would cost more than decoding. Throws WireFault.
 */
export class MessageReader {
  readonly #buffer: Buffer
  readonly #end: number
  #at: number
  #wireType = 0
  field = 0

  constructor(buffer: Buffer, from: number, to: number) {
    this.#buffer = buffer
    this.#at = from
    this.#end = to
  }

  /** Moves to the next field; false at the end. */
  next(): boolean {
    if (this.#at >= this.#end) return false
    const tag = this.#varint()
    this.field = Math.floor(tag / 8)
    this.#wireType = tag % 8
    return true
  }

  /** A varint as a number, exact up to 2^53. */
  number(): number {
    this.#expect(WIRE_VARINT)
    return this.#varint()
  }

  /** A varint of 64 bits. */
  bigint(): bigint {
    this.#expect(WIRE_VARINT)
    return this.#varint64()
  }

  /** Appends the values of a repeated number, packed or not. */
  bigints(into: bigint[]): void {
    if (this.#wireType === WIRE_VARINT) {
      into.push(this.#varint64())
      return
    }
    const { to } = this.span()
    for (this.#at = this.#from; this.#at < to; ) into.push(this.#varint64())
    if (this.#at !== to) throw new WireFault('a packed field ends in the middle of a number')
  }

  /** A view of the bytes, not a copy. */
  bytes(): Uint8Array<ArrayBuffer> {
    const { from, to } = this.span()
    return this.#buffer.subarray(from, to) as Uint8Array<ArrayBuffer>
  }

  text(): string {
    const { from, to } = this.span()
    return this.#buffer.toString('utf8', from, to)
  }

  /** A reader for the nested message. */
  message(): MessageReader {
    const { from, to } = this.span()
    return new MessageReader(this.#buffer, from, to)
  }

  /** The range of the field's bytes. */
  span(): { readonly buffer: Buffer; readonly from: number; readonly to: number } {
    this.#expect(WIRE_BYTES)
    const length = this.#varint()
    const from = this.#at
    this.#from = from
    this.#pass(length)
    return { buffer: this.#buffer, from, to: this.#at }
  }

  skip(): void {
    if (this.#wireType === WIRE_VARINT) this.#varint64()
    else if (this.#wireType === WIRE_BYTES) this.#pass(this.#varint())
    else if (this.#wireType === WIRE_FIXED64) this.#pass(8)
    else if (this.#wireType === WIRE_FIXED32) this.#pass(4)
    else throw new WireFault(`field ${this.field} is of wire type ${this.#wireType}`)
  }

  #from = 0

  #expect(wireType: number): void {
    if (this.#wireType !== wireType) throw new WireFault(`field ${this.field} is of wire type ${this.#wireType}`)
  }

  #pass(count: number): void {
    this.#at += count
    if (this.#at > this.#end) throw new WireFault('a field ends after its message')
  }

  #varint(): number {
    let value = 0
    let scale = 1
    for (let bits = 0; bits < VARINT_BITS_MAX && this.#at < this.#end; bits += 7) {
      const byte = this.#buffer[this.#at++] as number
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
      scale *= 128
    }
    throw new WireFault('a varint is longer than ten bytes or truncated')
  }

  /** Most values are small, so the low bits are read as a number first. */
  #varint64(): bigint {
    const start = this.#at
    const value = this.#varint()
    if (value <= Number.MAX_SAFE_INTEGER) return BigInt(value)
    let exact = 0n
    for (let at = start, shift = 0n; at < this.#at; at++, shift += 7n) {
      exact |= BigInt((this.#buffer[at] as number) & 0x7f) << shift
    }
    return BigInt.asUintN(64, exact)
  }
}
