import { QueryError, resultTooLarge } from '../query/error.ts'

/** Most bytes in one message between the processes, and in one write to a socket. */
export const PART_BYTES = 256 * 1024

/**
 * A formatted result in the memory of the database process. It is complete before its first byte is read, so a query that fails after a million
 * rows still responds with its error. A result of more than one part counts against the budget until it is read.
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

  /** Bytes that are not read yet. */
  get bytes(): number {
    return this.#bytes
  }

  /** Throws QueryError at a limit. */
  add(text: string): void {
    this.#text += text
    if (this.#text.length >= PART_BYTES) this.#flush()
  }

  /** Completes the result; `head` goes before everything that was added. */
  finish(head: string): void {
    if (this.#parts.length === 0) this.#text = head + this.#text
    else if (head !== '') this.#append(Buffer.from(head), 'first')
    this.#flush()
  }

  /** The next bytes, at most PART_BYTES; empty after the last ones. */
  read(): Buffer {
    const part = this.#parts.shift()
    if (part === undefined) return Buffer.alloc(0)
    if (part.length > PART_BYTES) this.#parts.unshift(part.subarray(PART_BYTES))
    const read = part.subarray(0, PART_BYTES)
    this.#bytes -= read.length
    this.#releaseDownTo(this.#bytes)
    return read
  }

  discard(): void {
    this.#parts = []
    this.#text = ''
    this.#bytes = 0
    this.#releaseDownTo(0)
  }

  #flush(): void {
    if (this.#text === '') return
    const part = Buffer.from(this.#text)
    this.#text = ''
    this.#append(part, 'last')
  }

  #append(part: Buffer, at: 'first' | 'last'): void {
    const bytes = this.#bytes + part.length
    if (bytes > this.#bytesMax) throw resultTooLarge(this.#bytesMax)
    // Results of one part are bounded by the number of permits.
    if (bytes > PART_BYTES) {
      this.#budget.acquire(this.#owner, bytes - this.#acquired)
      this.#acquired = bytes
    }
    this.#bytes = bytes
    if (at === 'first') this.#parts.unshift(part)
    else this.#parts.push(part)
  }

  #releaseDownTo(bytes: number): void {
    const released = this.#acquired - Math.min(this.#acquired, bytes)
    if (released === 0) return
    this.#acquired -= released
    this.#budget.release(this.#owner, released)
  }
}

/** Counts the bytes of results that clients have not read yet. */
export type ResultBudget = {
  /** Throws QueryError when `owner`, or all owners together, would hold more than the limit. */
  acquire(owner: string, bytes: number): void
  release(owner: string, bytes: number): void
  readonly heldBytes: number
}

export type ResultBudgetOptions = {
  readonly heldBytesMax: number
  readonly heldBytesPerSubscription: number
}

const RETRY_SECONDS = 1

export function createResultBudget(options: ResultBudgetOptions): ResultBudget {
  const byOwner = new Map<string, number>()
  let heldBytes = 0

  return {
    get heldBytes() {
      return heldBytes
    },
    acquire(owner, bytes) {
      const own = (byOwner.get(owner) ?? 0) + bytes
      if (own > options.heldBytesPerSubscription)
        throw refusal(options, 'heldBytesPerSubscription', 'this subscription')
      if (heldBytes + bytes > options.heldBytesMax) throw refusal(options, 'heldBytesMax', 'all subscriptions')
      heldBytes += bytes
      byOwner.set(owner, own)
    },
    release(owner, bytes) {
      heldBytes -= bytes
      const own = (byOwner.get(owner) ?? 0) - bytes
      if (own <= 0) byOwner.delete(owner)
      else byOwner.set(owner, own)
    },
  }
}

function refusal(options: ResultBudgetOptions, limit: keyof ResultBudgetOptions, whose: string): QueryError {
  return new QueryError(
    'CANNOT_SCHEDULE_TASK',
    `Results of ${whose} that are not read yet fill the limit indexer.query.${limit}: ${options[limit]} bytes. Read them, or try again in ${RETRY_SECONDS} seconds.`,
    RETRY_SECONDS,
  )
}
