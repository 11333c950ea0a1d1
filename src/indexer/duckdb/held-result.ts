import { QueryError, resultTooLarge } from '../query/error.ts'

/** Most bytes in one message between the processes, and in one write to a socket. */
export const PART_BYTES = 256 * 1024

/** Bytes of a result that are formatted ahead of its reader; a result of up to this size is complete before its first byte is sent. */
export const WINDOW_BYTES = 4 * 1024 * 1024

export type HeldResultOptions = {
  readonly owner: string
  readonly bytesMax: number
  /** Formatting waits when this many bytes are not read yet. */
  readonly windowBytes: number
}

/**
 * A formatted result on its way from the database process to its reader. What is not read yet is in memory and, if it is more than one part, counts
 * against the budget.
 */
export class HeldResult {
  readonly #budget: ResultBudget
  readonly #options: HeldResultOptions
  readonly #full = Promise.withResolvers<void>()
  #parts: Buffer[] = []
  #text = ''
  #acquired = 0
  #bytesMax: number
  #unread = 0
  #total = 0
  #end: 'finished' | QueryError | undefined
  /** Resolved at the next change: a part was added or read, or the result has ended. */
  #changed = Promise.withResolvers<void>()

  constructor(options: HeldResultOptions, budget: ResultBudget) {
    this.#budget = budget
    this.#options = options
    this.#bytesMax = options.bytesMax
  }

  /** Bytes that are not read yet. */
  get bytes(): number {
    return this.#unread
  }

  /** Bytes added so far. */
  get totalBytes(): number {
    return this.#total
  }

  /** Resolves when the window is full for the first time. */
  get full(): Promise<void> {
    return this.#full.promise
  }

  get hasRoom(): boolean {
    return this.#unread < this.#options.windowBytes
  }

  /** Resolves when there is room in the window. Rejects when the result was discarded. */
  async room(): Promise<void> {
    while (!this.hasRoom) {
      this.#full.resolve()
      await this.#changed.promise
    }
    if (this.#end instanceof QueryError) throw this.#end
  }

  /** Lowers the limit of the whole result. */
  limitTo(bytesMax: number): void {
    this.#bytesMax = Math.min(this.#bytesMax, bytesMax)
  }

  /** Throws QueryError at a limit. */
  add(piece: string | Uint8Array): void {
    if (typeof piece === 'string') {
      this.#text += piece
      if (this.#text.length >= PART_BYTES) this.#flush()
      return
    }
    this.#flush()
    this.#append(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength))
  }

  /** Completes the result. */
  finish(): void {
    this.#flush()
    this.#finish('finished')
  }

  /** The rest is lost; what was added before can still be read. */
  fail(error: QueryError): void {
    this.#finish(error)
  }

  /** The next bytes, at most PART_BYTES; empty when there are none at the moment. */
  read(): Buffer {
    const part = this.#parts.shift()
    if (part === undefined) return Buffer.alloc(0)
    if (part.length > PART_BYTES) this.#parts.unshift(part.subarray(PART_BYTES))
    const read = part.subarray(0, PART_BYTES)
    this.#unread -= read.length
    this.#releaseDownTo(this.#unread)
    this.#change()
    return read
  }

  /** Waits for the next bytes; empty after the last ones. Rejects with QueryError where the result has failed. */
  async next(): Promise<Buffer> {
    while (this.#parts.length === 0 && this.#end === undefined) await this.#changed.promise
    if (this.#parts.length === 0 && this.#end instanceof QueryError) throw this.#end
    return this.read()
  }

  discard(): void {
    this.#parts = []
    this.#text = ''
    this.#unread = 0
    this.#releaseDownTo(0)
    this.#finish(new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.'))
  }

  #finish(end: 'finished' | QueryError): void {
    this.#end ??= end
    this.#change()
  }

  #change(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  #flush(): void {
    if (this.#text === '') return
    const part = Buffer.from(this.#text)
    this.#text = ''
    this.#append(part)
  }

  #append(part: Buffer): void {
    if (part.length === 0) return
    if (this.#end instanceof QueryError) throw this.#end
    const { owner } = this.#options
    if (this.#total + part.length > this.#bytesMax) throw resultTooLarge(this.#bytesMax)
    const unread = this.#unread + part.length
    // Results of one part are bounded by the number of permits.
    if (unread > PART_BYTES && unread > this.#acquired) {
      this.#budget.acquire(owner, unread - this.#acquired)
      this.#acquired = unread
    }
    this.#total += part.length
    this.#unread = unread
    const last = this.#parts.at(-1)
    // Small pieces are joined: each part is a message between the processes.
    if (last !== undefined && last.length + part.length <= PART_BYTES)
      this.#parts[this.#parts.length - 1] = Buffer.concat([last, part])
    else this.#parts.push(part)
    this.#change()
  }

  #releaseDownTo(bytes: number): void {
    const released = this.#acquired - Math.min(this.#acquired, bytes)
    if (released === 0) return
    this.#acquired -= released
    this.#budget.release(this.#options.owner, released)
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
