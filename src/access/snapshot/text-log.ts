import assert from 'node:assert/strict'

/** A position has 32 bits: the chunk number in the upper bits, the offset in the lower bits; 4 GiB in all. */
const CHUNK_BITS = 20
const CHUNK_BYTES = 2 ** CHUNK_BITS
const CHUNKS_MAX = 2 ** (32 - CHUNK_BITS) - 1
const LENGTH_BYTES = 4

/** The longest text in bytes. */
export const LOGGED_BYTES_MAX = CHUNK_BYTES - LENGTH_BYTES

/** An append-only log of texts in large buffers outside the V8 heap, which other threads can read. */
export class TextLog {
  readonly #chunks: Buffer[]
  #used = CHUNK_BYTES

  /** A log that another thread writes, with the chunks it has so far; or a new one. */
  constructor(chunks: readonly SharedArrayBuffer[] = []) {
    this.#chunks = chunks.map((chunk) => Buffer.from(chunk))
  }

  get chunks(): SharedArrayBuffer[] {
    return this.#chunks.map(({ buffer }) => buffer as SharedArrayBuffer)
  }

  /** Bytes written, including the unused ends of chunks. */
  get bytes(): number {
    return this.#chunks.length * CHUNK_BYTES - (CHUNK_BYTES - this.#used)
  }

  /** Returns the position of the text. */
  append(text: string): number {
    const length = Buffer.byteLength(text)
    assert(length <= LOGGED_BYTES_MAX, 'a record is longer than LOGGED_BYTES_MAX')
    if (this.#used + LENGTH_BYTES + length > CHUNK_BYTES) {
      assert(this.#chunks.length < CHUNKS_MAX, 'the log is full')
      this.#chunks.push(Buffer.from(new SharedArrayBuffer(CHUNK_BYTES)))
      this.#used = 0
    }
    const chunk = this.#chunks.at(-1) as Buffer
    const at = this.#used
    chunk.writeUInt32LE(length, at)
    chunk.write(text, at + LENGTH_BYTES)
    this.#used += LENGTH_BYTES + length
    return (this.#chunks.length - 1) * CHUNK_BYTES + at
  }

  read(position: number): string {
    const { chunk, at, length } = this.#find(position)
    return chunk.toString('utf8', at, at + length)
  }

  /** Bytes of the log that the text at this position takes. */
  bytesAt(position: number): number {
    return LENGTH_BYTES + this.#find(position).length
  }

  #find(position: number): { chunk: Buffer; at: number; length: number } {
    const chunk = this.#chunks[Math.floor(position / CHUNK_BYTES)] as Buffer
    const start = position % CHUNK_BYTES
    return { chunk, at: start + LENGTH_BYTES, length: chunk.readUInt32LE(start) }
  }
}
