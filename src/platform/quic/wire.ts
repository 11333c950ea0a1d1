/** A QUIC error code (RFC 9000 section 20). Thrown while parsing data of the peer; the connection closes with it. */
export class QuicError extends Error {
  override readonly name = 'QuicError'
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

export const CODES = {
  noError: 0x00,
  internal: 0x01,
  flowControl: 0x03,
  streamLimit: 0x04,
  streamState: 0x05,
  frameEncoding: 0x07,
  transportParameter: 0x08,
  connectionIdLimit: 0x09,
  protocolViolation: 0x0a,
  application: 0x0c,
  cryptoBufferExceeded: 0x0d,
  keyUpdate: 0x0e,
  noViablePath: 0x10,
  /** A TLS alert is added to it. */
  crypto: 0x0100,
} as const

/** Reads a buffer from left to right; reading past its end throws the given error. */
export class ByteReader {
  readonly bytes: Uint8Array
  at: number
  readonly end: number
  readonly #fault: number

  constructor(bytes: Uint8Array, { from = 0, to = bytes.length, fault = CODES.frameEncoding as number } = {}) {
    this.bytes = bytes
    this.at = from
    this.end = to
    this.#fault = fault
  }

  get left(): number {
    return this.end - this.at
  }

  #take(count: number): number {
    const from = this.at
    if (count > this.end - from) throw new QuicError(this.#fault, 'the data is truncated')
    this.at = from + count
    return from
  }

  u8(): number {
    return this.bytes[this.#take(1)] as number
  }

  u16(): number {
    const at = this.#take(2)
    return ((this.bytes[at] as number) << 8) | (this.bytes[at + 1] as number)
  }

  u24(): number {
    return (this.u8() << 16) | this.u16()
  }

  u32(): number {
    return this.u16() * 0x10000 + this.u16()
  }

  /** Variable-length integer (RFC 9000 section 16). Values above 2^53 are capped: no limit here is that large. */
  varint(): number {
    const first = this.u8()
    const rest = first & 0x3f
    switch (first >> 6) {
      case 0:
        return rest
      case 1:
        return (rest << 8) | this.u8()
      case 2:
        return (rest << 24) | this.u24()
      default: {
        const high = ((rest << 24) | this.u24()) >>> 0
        return Math.min(Number.MAX_SAFE_INTEGER, high * 0x1_0000_0000 + this.u32())
      }
    }
  }

  /** A view, not a copy. */
  take(count: number): Uint8Array {
    const from = this.#take(count)
    return this.bytes.subarray(from, from + count)
  }

  /** The next `count` bytes as a reader of their own. */
  part(count: number): ByteReader {
    const from = this.#take(count)
    return new ByteReader(this.bytes, { from, to: from + count, fault: this.#fault })
  }
}

/** Writes into a buffer of fixed size. Callers check the room first; an overflow is a programming error. */
export class ByteWriter {
  readonly bytes: Uint8Array
  at = 0

  constructor(size: number) {
    this.bytes = new Uint8Array(size)
  }

  get left(): number {
    return this.bytes.length - this.at
  }

  get written(): Uint8Array {
    return this.bytes.subarray(0, this.at)
  }

  #claim(count: number): number {
    const from = this.at
    if (from + count > this.bytes.length) throw new RangeError('no room left')
    this.at = from + count
    return from
  }

  u8(value: number): this {
    this.bytes[this.#claim(1)] = value
    return this
  }

  u16(value: number): this {
    return this.u8(value >>> 8).u8(value & 0xff)
  }

  u24(value: number): this {
    return this.u8(value >>> 16).u16(value & 0xffff)
  }

  u32(value: number): this {
    return this.u16(value >>> 16).u16(value & 0xffff)
  }

  varint(value: number): this {
    if (value < 0x40) return this.u8(value)
    if (value < 0x4000) return this.u16(0x4000 | value)
    if (value < 0x4000_0000) return this.u32((0x8000_0000 | value) >>> 0)
    return this.u32((0xc000_0000 | Math.floor(value / 0x1_0000_0000)) >>> 0).u32((value % 0x1_0000_0000) >>> 0)
  }

  /** A length that will be known later, always in two bytes; `setVarint16` fills it in. */
  room16(): number {
    return this.#claim(2)
  }

  setVarint16(at: number, value: number): void {
    this.bytes[at] = 0x40 | (value >>> 8)
    this.bytes[at + 1] = value & 0xff
  }

  put(bytes: Uint8Array): this {
    this.bytes.set(bytes, this.#claim(bytes.length))
    return this
  }
}

export function varintLength(value: number): 1 | 2 | 4 | 8 {
  return value < 0x40 ? 1 : value < 0x4000 ? 2 : value < 0x4000_0000 ? 4 : 8
}
