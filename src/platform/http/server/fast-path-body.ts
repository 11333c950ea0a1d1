const NOTHING = Buffer.alloc(0)

/** A body of known length that arrives in pieces, and the room that was given for it. */
export class FastPathBody {
  #bytes: Buffer = NOTHING
  #filled = 0
  #release: ((bytes: number) => void) | undefined

  /** `release` is told the length once the body is not kept here any longer. */
  begin(bytes: number, release: ((bytes: number) => void) | undefined): void {
    this.#bytes = Buffer.allocUnsafe(bytes)
    this.#filled = 0
    this.#release = release
  }

  get isComplete(): boolean {
    return this.#filled === this.#bytes.length
  }

  /** Returns what lies behind the body. */
  fill(chunk: Buffer): Buffer {
    const taken = Math.min(chunk.length, this.#bytes.length - this.#filled)
    chunk.copy(this.#bytes, this.#filled, 0, taken)
    this.#filled += taken
    return taken === chunk.length ? NOTHING : chunk.subarray(taken)
  }

  take(): Buffer {
    const bytes = this.#bytes
    this.drop()
    return bytes
  }

  drop(): void {
    this.#release?.(this.#bytes.length)
    this.#release = undefined
    this.#bytes = NOTHING
    this.#filled = 0
  }
}
