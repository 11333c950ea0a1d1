import { QueryError } from '../query/error.ts'
import type { ResultBudget } from './result-budget.ts'

/** What is sent between the processes, and written to a socket, at a time. */
export const PART_BYTES = 256 * 1024

/**
 * A formatted result in the memory of the database process. It is complete before its first byte is read: a query that fails after a million rows is
 * still answered with its error. What does not fit one part counts against the budget until it is read.
 */
export class HeldResult {
  readonly #budget: ResultBudget
  readonly #owner: string
  readonly #bytesMax: number
  #parts: Buffer[] = []
  #text = ''
  #acquired = 0
  #bytes = 0

  constructor(options: { readonly owner: string; readonly bytesMax: number }, budget: ResultBudget) {
    this.#budget = budget
    this.#owner = options.owner
    this.#bytesMax = options.bytesMax
  }

  /** Bytes that are left to read. */
  get bytes(): number {
    return this.#bytes
  }

  /** Throws QueryError at a limit. */
  add(text: string): void {
    this.#text += text
    if (this.#text.length >= PART_BYTES) this.#flush()
  }

  /** Ends it with what stands before all that was added. */
  finish(head: string): void {
    if (this.#parts.length === 0) this.#text = head + this.#text
    else if (head !== '') this.#append(Buffer.from(head), 'first')
    this.#flush()
  }

  /** The next bytes, at most PART_BYTES. Empty after the last ones. */
  read(): Buffer {
    const part = this.#parts.shift()
    if (part === undefined) return Buffer.alloc(0)
    if (part.length > PART_BYTES) this.#parts.unshift(part.subarray(PART_BYTES))
    const read = part.subarray(0, PART_BYTES)
    this.#bytes -= read.length
    this.#keep(this.#bytes)
    return read
  }

  discard(): void {
    this.#parts = []
    this.#text = ''
    this.#bytes = 0
    this.#keep(0)
  }

  #flush(): void {
    if (this.#text === '') return
    const part = Buffer.from(this.#text)
    this.#text = ''
    this.#append(part, 'last')
  }

  #append(part: Buffer, at: 'first' | 'last'): void {
    if (this.#bytes + part.length > this.#bytesMax)
      throw new QueryError(
        'TOO_MANY_BYTES',
        `Limit for result exceeded: more than ${this.#bytesMax} bytes. Add LIMIT, or ask for fewer columns.`,
      )
    const bytes = this.#bytes + part.length
    // The number of permits bounds the small ones.
    if (bytes > PART_BYTES) {
      this.#budget.acquire(this.#owner, bytes - this.#acquired)
      this.#acquired = bytes
    }
    this.#bytes = bytes
    if (at === 'first') this.#parts.unshift(part)
    else this.#parts.push(part)
  }

  #keep(bytes: number): void {
    const released = this.#acquired - Math.min(this.#acquired, bytes)
    if (released === 0) return
    this.#acquired -= released
    this.#budget.release(this.#owner, released)
  }
}
