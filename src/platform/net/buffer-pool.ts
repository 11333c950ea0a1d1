/** A pooled buffer. */
export type AcquiredBuffer = {
  readonly bytes: Buffer
  /** Returns the buffer to the pool; the caller must not use the bytes afterwards. Without this call the buffer is garbage collected. */
  release(): void
}

/** Two sizes, so that a pooled buffer nearly always fits the next use. */
const SMALL_BYTES = 16 * 1024
const LARGE_BYTES = 256 * 1024

export type BufferPoolOptions = {
  readonly pooledBytesMax: number
  /** Size of the larger buffers. */
  readonly largeBytes?: number | undefined
}

/**
 * A pool of buffers. V8 runs a full garbage collection when much memory outside its heap was allocated: a stream that allocates a buffer for each read
 * spends more time on that than on its bytes.
 */
export class BufferPool {
  readonly #pooledBytesMax: number
  readonly #largeBytes: number
  #small: Buffer[] = []
  #large: Buffer[] = []
  #pooledBytes = 0

  constructor({ pooledBytesMax, largeBytes = LARGE_BYTES }: BufferPoolOptions) {
    this.#pooledBytesMax = pooledBytesMax
    this.#largeBytes = largeBytes
  }

  /** A buffer for so many bytes, or of the larger size where they are more. */
  acquire(bytes: number): AcquiredBuffer {
    const isSmall = bytes <= SMALL_BYTES
    const pooled = (isSmall ? this.#small : this.#large).pop()
    if (pooled !== undefined) this.#pooledBytes -= pooled.length
    return new Acquired(this, pooled ?? Buffer.allocUnsafeSlow(isSmall ? SMALL_BYTES : this.#largeBytes))
  }

  /** Drops all pooled buffers. */
  clear(): void {
    this.#small = []
    this.#large = []
    this.#pooledBytes = 0
  }

  /** Called by `AcquiredBuffer.release`. */
  add(bytes: Buffer): void {
    if (this.#pooledBytes + bytes.length > this.#pooledBytesMax) return
    this.#pooledBytes += bytes.length
    const free = bytes.length === SMALL_BYTES ? this.#small : this.#large
    free.push(bytes)
  }
}

class Acquired implements AcquiredBuffer {
  readonly bytes: Buffer
  readonly #pool: BufferPool
  #isReleased = false

  constructor(pool: BufferPool, bytes: Buffer) {
    this.#pool = pool
    this.bytes = bytes
  }

  release(): void {
    // Released twice, it would be acquired by two users at once.
    if (this.#isReleased) return
    this.#isReleased = true
    this.#pool.add(this.bytes)
  }
}
