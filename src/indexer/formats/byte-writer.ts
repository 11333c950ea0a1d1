/** Bytes that grow at the end. All numbers are little-endian. */
export class ByteWriter {
  #bytes: Buffer
  #length = 0

  constructor(capacity = 1024) {
    this.#bytes = Buffer.allocUnsafe(capacity)
  }

  get length(): number {
    return this.#length
  }

  byteAt(at: number): number {
    return this.#bytes[at] as number
  }

  /** The bytes so far; valid until the next write. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  /** The bytes so far as a buffer of their own. The writer is empty afterwards. */
  take(): Buffer {
    const taken = Buffer.from(this.view())
    this.#length = 0
    return taken
  }

  clear(): void {
    this.#length = 0
  }

  u8(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#length++] = value
  }

  u32(value: number): void {
    this.#reserve(4)
    this.#length = this.#bytes.writeUInt32LE(value, this.#length)
  }

  i32(value: number): void {
    this.u32(value >>> 0)
  }

  u64(value: number | bigint): void {
    this.#reserve(8)
    this.#length = this.#bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)), this.#length)
  }

  /** LEB128: ClickHouse's VarUInt, Thrift's and Parquet's varint. */
  varint(value: number): void {
    this.#reserve(10)
    let rest = value
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest % 0x80) + 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes[this.#length++] = rest
  }

  bytes(source: Uint8Array): void {
    this.#reserve(source.length)
    this.#bytes.set(source, this.#length)
    this.#length += source.length
  }

  /** Faster than `bytes` for the few bytes of one value. */
  copy(source: Uint8Array, start: number, end: number): void {
    this.#reserve(end - start)
    const bytes = this.#bytes
    let to = this.#length
    for (let at = start; at < end; at++) bytes[to++] = source[at] as number
    this.#length = to
  }

  fill(value: number, count: number): void {
    this.#reserve(count)
    this.#bytes.fill(value, this.#length, this.#length + count)
    this.#length += count
  }

  /** A text with its length in bytes before it. */
  text(value: string): void {
    const bytes = Buffer.from(value)
    this.varint(bytes.length)
    this.bytes(bytes)
  }

  /** Zeros up to the next multiple of `size`. */
  align(size: number): void {
    const over = this.#length % size
    if (over > 0) this.fill(0, size - over)
  }

  #reserve(count: number): void {
    const needed = this.#length + count
    if (needed <= this.#bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2))
    this.#bytes.copy(grown, 0, 0, this.#length)
    this.#bytes = grown
  }
}
