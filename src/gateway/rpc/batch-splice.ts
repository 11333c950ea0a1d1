import type { HeldBytes, HeldBytesLimit } from '../../platform/http/held-bytes.ts'
import type { ResponseRest } from '../../platform/http/response-rest.ts'
import { HeldCharge } from './held-charge.ts'
import { EarlyItems, HeldPieces } from './held-pieces.ts'
import { ResponseScan, type ScanEvent } from './response-scan.ts'

/** One part of the response to a batch: a text of the gateway, or the response to a call that was forwarded under `sentId`. */
export type BatchPart = { readonly text: string } | { readonly sentId: string; readonly id: string }

export type BatchSpliceDeps = {
  readonly heldBytes: HeldBytes
  readonly owner: string
  /** The error response for a call without a response from the upstream, or with one that exceeds a limit of held bytes. */
  errorFor(id: string, limit: HeldBytesLimit | undefined): string
}

type Listener = Parameters<ResponseRest['start']>[0]

/** Pieces are joined into writes up to this size. */
const JOINED_BYTES_MAX = 64 * 1024
/** Longer than any `sentId`. */
const SENT_ID_BYTES_MAX = 16

/**
 * Writes the response to a batch in the order of its calls while the upstream's array arrives in any order. An item is held until its id is
 * known and all parts before it are written; from then on it is streamed. Held bytes are charged to the owner, and the upstream is read only
 * while the client keeps up.
 */
export class BatchSplice implements ResponseRest {
  readonly #parts: readonly BatchPart[]
  /** Indexes of the parts whose responses are awaited, by `sentId`. */
  readonly #awaited = new Map<string, number>()
  readonly #first: Buffer
  readonly #source: ResponseRest | undefined
  readonly #deps: BatchSpliceDeps
  readonly #charge: HeldCharge
  readonly #scan = new ResponseScan({ isBatch: true })
  #listener: Listener | undefined
  /** `ended`: all of the upstream's bytes are read. `closed`: nothing more is written. */
  #state: 'reading' | 'ended' | 'closed' = 'reading'
  /** Index of the part to be written next. */
  #next = 0
  #written = 0
  /** The arriving item: its held pieces and its id, as far as they are read. */
  #item = new HeldPieces()
  #sentId = ''
  /** The arriving item is written as it comes. */
  #isStreaming = false
  /** The arriving item exceeded this limit. */
  #droppedBy: HeldBytesLimit | undefined
  readonly #early = new EarlyItems()
  /** To be written to the client. */
  readonly #ready = new HeldPieces()
  #isPaused = false
  #isSourcePaused = false

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
    this.#charge = new HeldCharge(deps.heldBytes, deps.owner)
  }

  start(listener: Listener): void {
    this.#listener = listener
    this.#writeDue()
    this.#scanPiece(this.#first)
    if (this.#source === undefined) this.#endSource()
    else if (this.#state === 'reading') {
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
    if (this.#state !== 'reading') return
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
    const pieces = this.#isStreaming ? this.#ready : this.#item
    pieces.push(piece.subarray(from, to))
  }

  /** Replaces the id of the arriving item by the client's. If the item is next in order, it is streamed from here on. */
  #onId(): void {
    const index = this.#awaited.get(this.#sentId)
    if (index === undefined || this.#droppedBy !== undefined) return
    this.#item.push(Buffer.from((this.#parts[index] as { id: string }).id))
    if (index !== this.#next) return
    this.#isStreaming = true
    this.#beginPart()
    this.#item.moveTo(this.#ready)
  }

  #endItem(): void {
    const isAwaited = this.#awaited.delete(this.#sentId)
    if (this.#isStreaming) this.#next += 1
    else if (!isAwaited) this.#item.clear()
    else if (this.#droppedBy !== undefined) this.#early.add(this.#sentId, this.#droppedBy)
    else {
      this.#early.add(this.#sentId, this.#item)
      this.#item = new HeldPieces()
    }
    this.#sentId = ''
    this.#isStreaming = false
    this.#droppedBy = undefined
    this.#writeDue()
  }

  /** Writes parts in order, up to the first whose response has not arrived. */
  #writeDue(): void {
    for (; this.#next < this.#parts.length; this.#next += 1) {
      const part = this.#parts[this.#next] as BatchPart
      if ('sentId' in part && !this.#early.has(part.sentId)) return
      this.#writePart(part)
    }
  }

  /** Writes all other parts: an error for a call whose response has not arrived. */
  #writeRemaining(): void {
    for (; this.#next < this.#parts.length; this.#next += 1) this.#writePart(this.#parts[this.#next] as BatchPart)
  }

  #writePart(part: BatchPart): void {
    this.#beginPart()
    if ('text' in part) return this.#ready.push(Buffer.from(part.text))
    const item = this.#early.take(part.sentId)
    if (typeof item === 'object') item.moveTo(this.#ready)
    else this.#ready.push(Buffer.from(this.#deps.errorFor(part.id, item)))
  }

  #beginPart(): void {
    this.#ready.push(this.#written === 0 ? OPENING : SEPARATOR)
    this.#written += 1
  }

  /** Writes ready bytes to the client, then resumes the upstream. */
  #pump(): void {
    while (!this.#isPaused && !this.#ready.isEmpty && this.#state !== 'closed') {
      this.#listener?.onData(this.#ready.takeUpTo(JOINED_BYTES_MAX))
    }
    if (this.#state === 'closed') return
    this.#updateCharge()
    if (this.#ready.isEmpty && this.#state === 'ended') {
      this.#close()
      this.#listener?.onEnd()
    } else this.#pauseSource(!this.#ready.isEmpty || this.#charge.isWaiting)
  }

  /** Charges the held bytes. Where a limit is reached the upstream is paused for a while, and then the arriving item is dropped. */
  #updateCharge(): void {
    const bytes = this.#item.bytes + this.#early.bytes + this.#ready.bytes
    if (this.#charge.update(bytes) || this.#item.isEmpty) return
    if (this.#charge.exceedsOwnerMax(bytes)) return this.#dropItem('heldBytesPerSubscription')
    this.#charge.wait(bytes, (limit) => {
      if (limit !== undefined) this.#dropItem(limit)
      this.#pump()
    })
  }

  #dropItem(limit: HeldBytesLimit): void {
    this.#droppedBy = limit
    this.#item.clear()
    this.#updateCharge()
  }

  #pauseSource(isPaused: boolean): void {
    if (isPaused === this.#isSourcePaused || this.#source === undefined || this.#state !== 'reading') return
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
    if (this.#state !== 'reading') return
    if (this.#isStreaming) {
      // Part of an item was sent already: only closing the connection can report the failure.
      this.#close()
      this.#listener?.onFail()
      return
    }
    this.#state = 'ended'
    this.#charge.stopWaiting()
    this.#item.clear()
    this.#writeRemaining()
    this.#ready.push(this.#written === 0 ? EMPTY : CLOSING)
    this.#pump()
  }

  #close(): void {
    this.#state = 'closed'
    this.#ready.clear()
    this.#item.clear()
    this.#early.clear()
    this.#charge.release()
  }
}

const OPENING = Buffer.from('[')
const SEPARATOR = Buffer.from(',')
const CLOSING = Buffer.from(']')
const EMPTY = Buffer.from('[]')
