import { encodeBase58 } from '../../../solana/crypto/base58.ts'

/** Thrown by ByteReader when the bytes end early or hold an invalid value; `parsable` turns it into undefined. */
export class BytesError extends Error {
  override readonly name = 'BytesError'
}

/** A little-endian reader with bounds checks for bincode and borsh: options are one byte, lists and strings are length-prefixed. */
export class ByteReader {
  offset = 0
  readonly #bytes: Uint8Array
  readonly #view: DataView

  constructor(bytes: Uint8Array, offset = 0) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.offset = offset
  }

  get remaining(): number {
    return this.#bytes.length - this.offset
  }

  #take(length: number): number {
    if (length > this.remaining) throw new BytesError('bytes end early')
    const at = this.offset
    this.offset += length
    return at
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1))
  }

  i8(): number {
    return this.#view.getInt8(this.#take(1))
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2), true)
  }

  i16(): number {
    return this.#view.getInt16(this.#take(2), true)
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true)
  }

  u64(): bigint {
    return this.#view.getBigUint64(this.#take(8), true)
  }

  i64(): bigint {
    return this.#view.getBigInt64(this.#take(8), true)
  }

  u128(): bigint {
    const low = this.u64()
    return low | (this.u64() << 64n)
  }

  f64(): number {
    return this.#view.getFloat64(this.#take(8), true)
  }

  /** Refuses any byte but 0 and 1, as bincode does. */
  bool(): boolean {
    const value = this.u8()
    if (value > 1) throw new BytesError('not a boolean')
    return value === 1
  }

  bytes(length: number): Uint8Array {
    const at = this.#take(length)
    return this.#bytes.subarray(at, at + length)
  }

  /** 32 bytes as an address. */
  key(): string {
    return encodeBase58(this.bytes(32))
  }

  /** bincode's Option: one byte, then the value. */
  option<T>(read: () => T): T | null {
    return this.bool() ? read() : null
  }

  /** A length of 64 bits, checked against the remaining bytes. */
  length64(bytesPerItemMin: number): number {
    const length = this.u64()
    if (length * BigInt(bytesPerItemMin) > BigInt(this.remaining)) throw new BytesError('list longer than its bytes')
    return Number(length)
  }

  list64<T>(bytesPerItemMin: number, read: () => T): T[] {
    return Array.from({ length: this.length64(bytesPerItemMin) }, read)
  }

  /** bincode's string: length of 64 bits, UTF-8. */
  string64(): string {
    return readUtf8(this.bytes(this.length64(1)))
  }

  /** borsh's string: length of 32 bits, UTF-8. */
  string32(): string {
    return readUtf8(this.bytes(this.u32()))
  }

  /** A length in bincode's "short vec" form, 7 bits a byte. */
  shortLength(): number {
    let value = 0
    for (let shift = 0; shift < 21; shift += 7) {
      const byte = this.u8()
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    throw new BytesError('short length too long')
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Throws BytesError on bytes that are not UTF-8. */
export function readUtf8(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes)
  } catch {
    throw new BytesError('not UTF-8')
  }
}

/** The result of a parser, or undefined where it throws BytesError. */
export function parsable<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch (error) {
    if (error instanceof BytesError) return undefined
    throw error
  }
}
