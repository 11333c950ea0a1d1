import { UNIT } from '../api/work-budget.ts'
import { responseTooLarge } from './failure.ts'

/** Text is encoded in chunks of about this size. */
const CHUNK_CHARS = 64 * 1024

export type ResponseMark = { readonly chunks: number; readonly bytes: number }

/** The text of a response being built, bounded in bytes. */
export class ResponseText {
  readonly #bytesMax: number
  readonly #onBytes: (bytes: number) => void
  #chunks: Buffer[] = []
  #bytes = 0
  #pending = ''

  /** `onBytes` is called for all bytes produced, also of parts that are rolled back: they were work too. */
  constructor(options: { readonly bytesMax: number; readonly onBytes: (bytes: number) => void }) {
    this.#bytesMax = options.bytesMax
    this.#onBytes = options.onBytes
  }

  /** Bytes that still fit. */
  get room(): number {
    return this.#bytesMax - this.#bytes - this.#pending.length
  }

  /** Adds JSON; throws when the response becomes too large. */
  add(text: string): void {
    if (text.length > this.room) throw responseTooLarge(this.#bytesMax)
    this.addUnlimited(text)
  }

  /** Adds what is not limited: errors, and the brackets and commas of a batch. */
  addUnlimited(text: string): void {
    this.#pending += text
    if (this.#pending.length >= CHUNK_CHARS) this.#flush()
  }

  /** Adds cached text. */
  addChunks(chunks: readonly Buffer[]): void {
    const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
    if (bytes > this.room) throw responseTooLarge(this.#bytesMax)
    this.#flush()
    for (const chunk of chunks) this.#chunks.push(chunk)
    this.#bytes += bytes
    // Cached text costs less than new text.
    this.#onBytes(bytes * (UNIT.bytes / UNIT.readyBytes))
  }

  /** Throws when a part of at least this many bytes does not fit, before it is rendered. */
  admit(bytes: number): void {
    if (bytes > this.room) throw responseTooLarge(this.#bytesMax)
  }

  mark(): ResponseMark {
    this.#flush()
    return { chunks: this.#chunks.length, bytes: this.#bytes }
  }

  /** The chunks added since the mark. */
  since({ chunks }: ResponseMark): Buffer[] {
    this.#flush()
    return this.#chunks.slice(chunks)
  }

  rollBack({ chunks, bytes }: ResponseMark): void {
    this.#flush()
    this.#chunks.length = chunks
    this.#bytes = bytes
  }

  take(): { readonly chunks: readonly Buffer[]; readonly bytes: number } {
    this.#flush()
    return { chunks: this.#chunks, bytes: this.#bytes }
  }

  #flush(): void {
    if (this.#pending === '') return
    const chunk = Buffer.from(this.#pending)
    this.#pending = ''
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    this.#onBytes(chunk.length)
  }
}
