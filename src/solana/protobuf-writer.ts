import { Buffer } from 'node:buffer'

const VARINT = 0
const FIXED64 = 1
const LENGTH_DELIMITED = 2

const INITIAL_BYTES = 16 * 1024

/**
 * Writes protobuf fields straight into one growing buffer, for messages made by the thousand. Fields must be written in
 * the order of their numbers to come out as other encoders write them. `uint`, `bool`, `bytes` and `text` leave out the
 * default value as proto3 does; the `present…` forms are for `optional` and `repeated` fields.
 */
export class ProtobufWriter {
  #buffer = Buffer.allocUnsafeSlow(INITIAL_BYTES)
  #length = 0

  get length(): number {
    return this.#length
  }

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

  /** A message inside this one; written also when it is empty. */
  message(field: number, write: () => void): void {
    this.#tag(field, LENGTH_DELIMITED)
    this.#reserve(1)
    const lengthAt = this.#length++
    write()
    const bytes = this.#length - lengthAt - 1
    const extra = varintBytes(bytes) - 1
    if (extra > 0) {
      this.#reserve(extra)
      this.#buffer.copyWithin(lengthAt + 1 + extra, lengthAt + 1, this.#length)
    }
    this.#length = lengthAt
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

  /** What was written since the last `take`, as bytes of their own. */
  take(): Uint8Array {
    const taken = new Uint8Array(this.#length)
    taken.set(this.#buffer.subarray(0, this.#length))
    this.#length = 0
    // One large message must not make this writer keep its size for ever.
    if (this.#buffer.length > INITIAL_BYTES) this.#buffer = Buffer.allocUnsafeSlow(INITIAL_BYTES)
    return taken
  }

  #tag(field: number, wireType: number): void {
    this.#reserve(5)
    this.#varint(field * 8 + wireType)
  }

  /** Room must have been reserved. */
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

  /** Writes the low groups of seven bits until the rest is an exact number. */
  #highPart(value: bigint): number {
    let rest = value
    while (rest > 0x1fffffffffffffn) {
      this.#buffer[this.#length++] = Number(rest & 127n) | 0x80
      rest >>= 7n
    }
    return Number(rest)
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.length * 2))
    larger.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = larger
  }
}

export function varintBytes(value: number): number {
  let bytes = 1
  for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) bytes++
  return bytes
}
