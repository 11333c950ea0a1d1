/** A buffer that may be used again. */
export type AcquiredBuffer = {
  readonly bytes: Buffer
  /** To be called when nobody looks at the bytes any more, and not before. Who never calls it keeps them. */
  giveBack(): void
}

/** Two sizes, so that what came back nearly always fits the next use. */
const SMALL_BYTES = 16 * 1024
const LARGE_BYTES = 256 * 1024

/**
 * Lends buffers and keeps those that come back. Memory of buffers lies outside the heap of the runtime, which collects the whole heap when much of
 * it was asked for: a stream that takes a new buffer for each read spends more time on that than on its bytes.
 */
export class BufferPool {
  readonly #keptBytesMax: number
  #small: Buffer[] = []
  #large: Buffer[] = []
  #keptBytes = 0

  constructor(options: { readonly keptBytesMax: number }) {
    this.#keptBytesMax = options.keptBytesMax
  }

  /** One that holds so many bytes, or as many as a buffer has at most. */
  lend(bytes: number): AcquiredBuffer {
    const isSmall = bytes <= SMALL_BYTES
    const kept = (isSmall ? this.#small : this.#large).pop()
    if (kept !== undefined) this.#keptBytes -= kept.length
    return new Acquired(this, kept ?? Buffer.allocUnsafeSlow(isSmall ? SMALL_BYTES : LARGE_BYTES))
  }

  /** Keeps nothing of what has come back so far. */
  clear(): void {
    this.#small = []
    this.#large = []
    this.#keptBytes = 0
  }

  /** To be called by what was lent. */
  takeBack(bytes: Buffer): void {
    if (this.#keptBytes + bytes.length > this.#keptBytesMax) return
    this.#keptBytes += bytes.length
    const kept = bytes.length === SMALL_BYTES ? this.#small : this.#large
    kept.push(bytes)
  }
}

class Acquired implements AcquiredBuffer {
  readonly bytes: Buffer
  readonly #pool: BufferPool
  #isBack = false

  constructor(pool: BufferPool, bytes: Buffer) {
    this.#pool = pool
    this.bytes = bytes
  }

  giveBack(): void {
    // Given back twice, it would be lent to two at once.
    if (this.#isBack) return
    this.#isBack = true
    this.#pool.takeBack(this.bytes)
  }
}
