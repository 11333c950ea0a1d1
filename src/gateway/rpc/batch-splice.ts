import type { HeldBytesLimit, ResponseBudget } from '../../platform/http/response-budget.ts'
import type { ResponseRest } from '../../platform/http/response-rest.ts'
import { ResponseScan, type ScanEvent } from './response-scan.ts'

/** One part of the response to a batch: a text of the gateway, or the response to a call that was forwarded under `sentId`. */
export type BatchPart = { readonly text: string } | { readonly sentId: string; readonly id: string }

export type BatchSpliceDeps = {
  readonly budget: ResponseBudget
  readonly owner: string
  /** The error response for a call without a response from the upstream, or with one that exceeds the memory budget. */
  errorFor(id: string, limit: HeldBytesLimit | undefined): string
}

type Listener = Parameters<ResponseRest['start']>[0]

/** Pieces are joined into writes up to this size. */
const JOINED_BYTES_MAX = 64 * 1024
/** Longer than any `sentId`. */
const SENT_ID_BYTES_MAX = 16

/**
 * Writes the response to a batch in the order of its calls while the upstream's array arrives in any order. An item is held until its id is
 * known and all parts before it are written; from then on it is streamed. Held bytes count against the memory budget, and the upstream is
 * read only while the client keeps up.
 */
export class BatchSplice implements ResponseRest {
  readonly #parts: readonly BatchPart[]
  /** Indexes of the parts whose responses are awaited, by `sentId`. */
  readonly #awaited = new Map<string, number>()
  readonly #first: Buffer
  readonly #source: ResponseRest | undefined
  readonly #deps: BatchSpliceDeps
  readonly #scan = new ResponseScan({ isBatch: true })
  #listener: Listener | undefined
  /** Index of the part to be written next. */
  #next = 0
  #written = 0
  /** Items that arrived early, by `sentId`; the limit in place of one that exceeded the memory budget. */
  readonly #early = new Map<string, Buffer[] | HeldBytesLimit>()
  /** The held pieces of the arriving item. */
  #item: Buffer[] = []
  #sentId = ''
  /** The arriving item is written as it comes. */
  #isStreaming = false
  #droppedBy: HeldBytesLimit | undefined
  /** To be written to the client. */
  #ready: Buffer[] = []
  #heldBytes = 0
  #chargedBytes = 0
  #waiting: { cancel(): void } | undefined
  #isPaused = false
  #isSourcePaused = false
  #hasEnded = false
  #isClosed = false

  constructor(
    parts: readonly BatchPart[],
    { body, rest }: { readonly body: Buffer; readonly rest?: ResponseRest | undefined },
    deps: BatchSpliceDeps,
  ) {
    this.#parts = parts
    parts.forEach((part, at) => void ('sentId' in part && this.#awaited.set(part.sentId, at)))
    this.#first = body
    this.#source = rest
    this.#deps = deps
  }

  start(listener: Listener): void {
    this.#listener = listener
    this.#writeDue(false)
    this.#scanPiece(this.#first)
    if (this.#source === undefined) this.#endSource()
    else if (!this.#hasEnded && !this.#isClosed) {
      this.#source.start({
        onData: (piece) => this.#onData(piece),
        onEnd: () => this.#endSource(),
        onFail: () => this.#endSource(),
      })
    }
    this.#pump()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#pump()
  }

  abort(): void {
    this.#close()
    this.#source?.abort()
  }

  #onData(piece: Buffer): void {
    if (this.#hasEnded || this.#isClosed) return
    this.#scanPiece(piece)
    this.#pump()
  }

  #scanPiece(piece: Buffer): void {
    const scan = this.#scan
    scan.at = 0
    /** The piece is consumed up to here. */
    let from = 0
    for (;;) {
      const event: ScanEvent = scan.next(piece)
      const { at } = scan
      if (event === 'fault') return this.#stop()
      if (event === 'item-start') from = at - 1
      else if (event === 'id-start') {
        this.#keep(piece, from, at)
        from = at
      } else if (event === 'id-end') {
        this.#readId(piece, from, at)
        from = at
        this.#onId()
      } else if (event === 'item-end') {
        this.#keep(piece, from, at)
        this.#endItem()
      } else if (event === 'more' && scan.isInItem) {
        if (scan.isInId) this.#readId(piece, from, at)
        else this.#keep(piece, from, at)
        return
      } else if (event === 'more' || event === 'end') return
    }
  }

  /** Reads at most one byte more than a `sentId` can have; a longer id matches nothing. */
  #readId(piece: Buffer, from: number, to: number): void {
    if (this.#sentId.length > SENT_ID_BYTES_MAX) return
    this.#sentId += piece.toString('latin1', from, Math.min(to, from + SENT_ID_BYTES_MAX + 1))
  }

  #keep(piece: Buffer, from: number, to: number): void {
    if (to === from || this.#droppedBy !== undefined) return
    const bytes = piece.subarray(from, to)
    if (this.#isStreaming) return this.#write(bytes)
    this.#item.push(bytes)
    this.#heldBytes += bytes.length
  }

  /** Replaces the id of the arriving item by the client's. If the item is next in order, it is streamed from here on. */
  #onId(): void {
    const index = this.#awaited.get(this.#sentId)
    if (index === undefined || this.#droppedBy !== undefined) return
    const id = Buffer.from((this.#parts[index] as { id: string }).id)
    this.#item.push(id)
    this.#heldBytes += id.length
    if (index !== this.#next) return
    this.#isStreaming = true
    this.#beginPart()
    this.#moveItem()
  }

  #endItem(): void {
    const sentId = this.#sentId
    const isAwaited = this.#awaited.delete(sentId)
    if (this.#isStreaming) this.#next += 1
    else if (isAwaited) this.#early.set(sentId, this.#droppedBy ?? this.#item)
    else this.#heldBytes -= bytesOf(this.#item)
    this.#item = []
    this.#sentId = ''
    this.#isStreaming = false
    this.#droppedBy = undefined
    this.#writeDue(false)
  }

  /** Writes all parts that are complete, in order; at the end also those without a response. */
  #writeDue(isEnd: boolean): void {
    for (; this.#next < this.#parts.length; this.#next += 1) {
      const part = this.#parts[this.#next] as BatchPart
      if ('text' in part) {
        this.#beginPart()
        this.#write(Buffer.from(part.text))
        continue
      }
      const item = this.#early.get(part.sentId)
      if (item === undefined && !isEnd) return
      this.#early.delete(part.sentId)
      this.#beginPart()
      if (typeof item === 'object') {
        this.#heldBytes -= bytesOf(item)
        for (const piece of item) this.#write(piece)
      } else this.#write(Buffer.from(this.#deps.errorFor(part.id, item)))
    }
  }

  #beginPart(): void {
    this.#write(this.#written === 0 ? OPENING : SEPARATOR)
    this.#written += 1
  }

  #moveItem(): void {
    this.#heldBytes -= bytesOf(this.#item)
    for (const piece of this.#item) this.#write(piece)
    this.#item = []
  }

  #write(bytes: Buffer): void {
    this.#ready.push(bytes)
    this.#heldBytes += bytes.length
  }

  /** Writes ready bytes to the client, then resumes the upstream. */
  #pump(): void {
    while (!this.#isPaused && this.#ready.length > 0 && !this.#isClosed) {
      const bytes = this.#takeReady()
      this.#heldBytes -= bytes.length
      this.#listener?.onData(bytes)
    }
    if (this.#isClosed) return
    this.#charge()
    if (this.#ready.length === 0 && this.#hasEnded) {
      this.#close()
      this.#listener?.onEnd()
    } else this.#pauseSource(this.#ready.length > 0 || this.#waiting !== undefined)
  }

  /** As many pieces as fit into one write. */
  #takeReady(): Buffer {
    let count = 0
    let bytes = 0
    do bytes += (this.#ready[count++] as Buffer).length
    while (count < this.#ready.length && bytes + (this.#ready[count] as Buffer).length <= JOINED_BYTES_MAX)
    const pieces = this.#ready.splice(0, count)
    return count === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
  }

  /** Charges held bytes to the budget. Where it is used up the upstream is paused for a while, and then the arriving item is dropped. */
  #charge(): void {
    const { budget, owner } = this.#deps
    const more = this.#heldBytes - this.#chargedBytes
    if (more < 0) {
      budget.release(owner, -more)
      this.#chargedBytes = this.#heldBytes
    } else if (more > 0 && this.#waiting === undefined) {
      if (budget.acquire(owner, more)) this.#chargedBytes += more
      else if (this.#item.length > 0) this.#awaitBudget(more)
    }
  }

  #awaitBudget(bytes: number): void {
    const { budget, owner } = this.#deps
    // More than the owner's limit will not fit later either.
    if (this.#heldBytes > budget.limits.heldBytesPerSubscription) return this.#dropItem('heldBytesPerSubscription')
    const limit = budget.exceeded(owner, bytes) ?? 'heldBytes'
    this.#waiting = budget.acquireLater(owner, bytes, (isAcquired) => {
      this.#waiting = undefined
      if (isAcquired) this.#chargedBytes += bytes
      else this.#dropItem(limit)
      this.#pump()
    })
  }

  #dropItem(limit: HeldBytesLimit): void {
    this.#droppedBy = limit
    this.#heldBytes -= bytesOf(this.#item)
    this.#item = []
    this.#charge()
  }

  #pauseSource(isPaused: boolean): void {
    if (isPaused === this.#isSourcePaused || this.#source === undefined || this.#hasEnded) return
    this.#isSourcePaused = isPaused
    if (isPaused) this.#source.pause()
    else this.#source.resume()
  }

  /** The upstream's array is malformed. */
  #stop(): void {
    this.#source?.abort()
    this.#endSource()
  }

  #endSource(): void {
    if (this.#hasEnded || this.#isClosed) return
    if (this.#isStreaming) {
      // Part of an item was sent already: only closing the connection can report the failure.
      this.#close()
      this.#listener?.onFail()
      return
    }
    this.#hasEnded = true
    this.#waiting?.cancel()
    this.#waiting = undefined
    this.#heldBytes -= bytesOf(this.#item)
    this.#item = []
    this.#writeDue(true)
    this.#write(this.#written === 0 ? EMPTY : CLOSING)
    this.#pump()
  }

  #close(): void {
    this.#isClosed = true
    this.#waiting?.cancel()
    this.#waiting = undefined
    this.#ready = []
    this.#item = []
    this.#early.clear()
    if (this.#chargedBytes > 0) this.#deps.budget.release(this.#deps.owner, this.#chargedBytes)
    this.#chargedBytes = 0
  }
}

const OPENING = Buffer.from('[')
const SEPARATOR = Buffer.from(',')
const CLOSING = Buffer.from(']')
const EMPTY = Buffer.from('[]')

function bytesOf(pieces: readonly Buffer[]): number {
  let bytes = 0
  for (const piece of pieces) bytes += piece.length
  return bytes
}
