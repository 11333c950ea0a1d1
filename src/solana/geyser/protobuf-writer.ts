import { Buffer } from 'node:buffer'
import { varintBytes } from './varint.ts'

const VARINT = 0
const FIXED64 = 1
const LENGTH_DELIMITED = 2

/** Messages are allocated from slabs of this size. A reference to a message keeps its slab in memory. */
const SLAB_BYTES = 64 * 1024

/**
 * Writes protobuf fields directly into one growing buffer, for messages encoded by the thousand. Fields must be written in
 * the order of their numbers for the bytes to equal those of other encoders. `uint`, `bool`, `bytes` and `text` omit the
 * default value as proto3 does; the `present…` methods are for `optional` and `repeated` fields.
 */
export class ProtobufWriter {
  #buffer = Buffer.allocUnsafeSlow(SLAB_BYTES)
  /** The offset of the current message. */
  #start = 0
  #length = 0

  uint(field: number, value: number | bigint): void {
    if (value !== 0 && value !== 0n) this.presentUint(field, value)
  }

  presentUint(field: number, value: number | bigint): void {
    this.#tag(field, VARINT)
    this.#reserve(10)
    this.#varint(value)
  }

  /** A signed 64-bit value in two's complement, as int64 and int32 are written. */
  int(field: number, value: number | bigint): void {
    this.uint(field, value < 0 ? BigInt.asUintN(64, BigInt(value)) : value)
  }

  bool(field: number, value: boolean): void {
    if (value) this.presentUint(field, 1)
  }

  double(field: number, value: number): void {
    if (value === 0) return
    this.#tag(field, FIXED64)
    this.#reserve(8)
    this.#length = this.#buffer.writeDoubleLE(value, this.#length)
  }

  bytes(field: number, value: Uint8Array): void {
    if (value.length > 0) this.presentBytes(field, value)
  }

  presentBytes(field: number, value: Uint8Array): void {
    this.lengthPrefix(field, value.length)
    this.raw(value)
  }

  text(field: number, value: string): void {
    if (value.length > 0) this.presentText(field, value)
  }

  presentText(field: number, value: string): void {
    const bytes = Buffer.byteLength(value)
    this.lengthPrefix(field, bytes)
    this.#reserve(bytes)
    this.#length += this.#buffer.write(value, this.#length, 'utf8')
  }

  packedUints(field: number, values: readonly (number | bigint)[]): void {
    if (values.length === 0) return
    this.message(field, () => {
      this.#reserve(values.length * 10)
      for (const value of values) this.#varint(value)
    })
  }

  /** A nested message; written even when it is empty. What it contains is moved where its length takes more than one byte. */
  message(field: number, write: () => void): void {
    this.#tag(field, LENGTH_DELIMITED)
    this.#reserve(1)
    this.#length += 1
    // Relative to the start: the message may move to another slab while it is written.
    const from = this.#length - this.#start
    write()
    const bytes = this.#length - this.#start - from
    const extra = varintBytes(bytes) - 1
    this.#reserve(extra)
    const bodyAt = this.#start + from
    if (extra > 0) this.#buffer.copyWithin(bodyAt + extra, bodyAt, this.#length)
    this.#length = bodyAt - 1
    this.#varint(bytes)
    this.#length += bytes
  }

  /** The tag and length of a field whose `bytes` bytes are written next, by `raw`. */
  lengthPrefix(field: number, bytes: number): void {
    this.#tag(field, LENGTH_DELIMITED)
    this.#reserve(5)
    this.#varint(bytes)
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length)
    this.#buffer.set(bytes, this.#length)
    this.#length += bytes.length
  }

  /** Where the next `bytes` bytes go in `buffer`. They are written without this class, and `advance` ends them. */
  reserve(bytes: number): number {
    this.#reserve(bytes)
    return this.#length
  }

  /** Valid until the next call. */
  get buffer(): Uint8Array {
    return this.#buffer
  }

  /** All bytes before `to` are written. */
  advance(to: number): void {
    this.#length = to
  }

  /** The bytes written since the last `take`. They are not changed later. */
  take(): Uint8Array {
    const taken = this.#buffer.subarray(this.#start, this.#length)
    this.#start = this.#length
    return taken
  }

  /** The same; valid until the next write, which uses their memory again. */
  takeTemporary(): Uint8Array {
    const taken = this.#buffer.subarray(this.#start, this.#length)
    this.#length = this.#start
    return taken
  }

  #tag(field: number, wireType: number): void {
    this.#reserve(5)
    this.#varint(field * 8 + wireType)
  }

  /** The caller has reserved the space. */
  #varint(value: number | bigint): void {
    let rest = typeof value === 'bigint' ? this.#highPart(value) : value
    const buffer = this.#buffer
    while (rest > 0x7fffffff) {
      buffer[this.#length++] = (rest % 128) | 0x80
      rest = Math.floor(rest / 128)
    }
    while (rest > 127) {
      buffer[this.#length++] = (rest & 127) | 0x80
      rest >>>= 7
    }
    buffer[this.#length++] = rest
  }

  /** Writes the low groups of seven bits until the rest fits a number exactly. */
  #highPart(value: bigint): number {
    let rest = value
    while (rest > 0x1fffffffffffffn) {
      this.#buffer[this.#length++] = Number(rest & 127n) | 0x80
      rest >>= 7n
    }
    return Number(rest)
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return
    const written = this.#length - this.#start
    const slab = Buffer.allocUnsafeSlow(Math.max(SLAB_BYTES, (written + bytes) * 2))
    slab.set(this.#buffer.subarray(this.#start, this.#length))
    this.#buffer = slab
    this.#start = 0
    this.#length = written
  }
}
