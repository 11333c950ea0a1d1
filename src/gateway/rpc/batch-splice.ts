import type { HeldBytesLimit, ResponseBudget } from '../../platform/http/response-budget.ts'
import type { ResponseRest } from '../../platform/http/server/post.ts'
import { ResponseScan, type ScanEvent } from './response-scan.ts'

/** What stands at one position of the response to a batch: text of ours, or the response to a call that was forwarded under `sentId`. */
export type BatchPart = { readonly text: string } | { readonly sentId: string; readonly id: string }

export type BatchSpliceDeps = {
  readonly budget: ResponseBudget
  readonly owner: string
  /** The response in place of one that the upstream did not give, or that could not be held. */
  errorFor(id: string, limit: HeldBytesLimit | undefined): string
}

type Listener = Parameters<ResponseRest['start']>[0]

/** Pieces up to this size leave joined. */
const JOINED_BYTES_MAX = 64 * 1024
/** Longer than any id of ours. */
const SENT_ID_BYTES_MAX = 16

/**
 * The response to a batch, written in the order of its calls while the upstream's array arrives. An item is held until its id is known and its turn
 * has come; from then on it flows. What is held counts against the budget, and the upstream is read only when what is ready has left.
 */
export class BatchSplice implements ResponseRest {
  readonly #parts: readonly BatchPart[]
  /** Positions of the parts that are awaited, by the id they were sent under. */
  readonly #awaited = new Map<string, number>()
  readonly #first: Buffer
  readonly #source: ResponseRest | undefined
  readonly #deps: BatchSpliceDeps
  readonly #scan = new ResponseScan({ isBatch: true })
  #listener: Listener | undefined
  /** The part whose turn it is. */
  #turn = 0
  #written = 0
  /** Items whose turn has not come, by the id they were sent under; a limit in place of one that could not be held. */
  readonly #early = new Map<string, Buffer[] | HeldBytesLimit>()
  /** What is held of the item that arrives. */
  #item: Buffer[] = []
  #sentId = ''
  /** It has its turn: nothing of it is held. */
  #isFlowing = false
  #droppedBy: HeldBytesLimit | undefined
  /** On its way to the client. */
  #ready: Buffer[] = []
  #heldBytes = 0
  #chargedBytes = 0
  #waiting: { cancel(): void } | undefined
  #isPaused = false
  #isSourcePaused = false
  #hasEnded = false
  #isOver = false

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
    else if (!this.#hasEnded && !this.#isOver) {
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
    if (this.#hasEnded || this.#isOver) return
    this.#scanPiece(piece)
    this.#pump()
  }

  #scanPiece(piece: Buffer): void {
    const scan = this.#scan
    scan.at = 0
    /** Up to here the piece is used. */
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
        this.#settleTurn()
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

  /** An id of ours is short: what makes it longer makes it nobody's. */
  #readId(piece: Buffer, from: number, to: number): void {
    if (this.#sentId.length > SENT_ID_BYTES_MAX) return
    this.#sentId += piece.toString('latin1', from, Math.min(to, from + SENT_ID_BYTES_MAX + 1))
  }

  #keep(piece: Buffer, from: number, to: number): void {
    if (to === from || this.#droppedBy !== undefined) return
    const bytes = piece.subarray(from, to)
    if (this.#isFlowing) return this.#write(bytes)
    this.#item.push(bytes)
    this.#heldBytes += bytes.length
  }

  /** The id of the arriving item is known: the client's takes its place, and where it is its turn the item need not be held any longer. */
  #settleTurn(): void {
    const position = this.#awaited.get(this.#sentId)
    if (position === undefined || this.#droppedBy !== undefined) return
    const id = Buffer.from((this.#parts[position] as { id: string }).id)
    this.#item.push(id)
    this.#heldBytes += id.length
    if (position !== this.#turn) return
    this.#isFlowing = true
    this.#beginPart()
    this.#moveItem()
  }

  #endItem(): void {
    const sentId = this.#sentId
    const isAwaited = this.#awaited.delete(sentId)
    if (this.#isFlowing) this.#turn += 1
    else if (isAwaited) this.#early.set(sentId, this.#droppedBy ?? this.#item)
    else this.#heldBytes -= bytesOf(this.#item)
    this.#item = []
    this.#sentId = ''
    this.#isFlowing = false
    this.#droppedBy = undefined
    this.#writeDue(false)
  }

  /** Writes the parts whose turn has come; at the end also those that nothing came for. */
  #writeDue(isEnd: boolean): void {
    for (; this.#turn < this.#parts.length; this.#turn += 1) {
      const part = this.#parts[this.#turn] as BatchPart
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

  /** Gives what is ready to the client, then lets the upstream go on. */
  #pump(): void {
    while (!this.#isPaused && this.#ready.length > 0 && !this.#isOver) {
      const bytes = this.#takeReady()
      this.#heldBytes -= bytes.length
      this.#listener?.onData(bytes)
    }
    if (this.#isOver) return
    this.#charge()
    if (this.#ready.length === 0 && this.#hasEnded) {
      this.#close()
      this.#listener?.onEnd()
    } else this.#holdSource(this.#ready.length > 0 || this.#waiting !== undefined)
  }

  /** As many pieces as make a write worth its while. */
  #takeReady(): Buffer {
    let count = 0
    let bytes = 0
    do bytes += (this.#ready[count++] as Buffer).length
    while (count < this.#ready.length && bytes + (this.#ready[count] as Buffer).length <= JOINED_BYTES_MAX)
    const pieces = this.#ready.splice(0, count)
    return count === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
  }

  /** Counts what is held. Without room the upstream waits for a while, and then the arriving item is given up. */
  #charge(): void {
    const { budget, owner } = this.#deps
    const more = this.#heldBytes - this.#chargedBytes
    if (more < 0) {
      budget.release(owner, -more)
      this.#chargedBytes = this.#heldBytes
    } else if (more > 0 && this.#waiting === undefined) {
      if (budget.acquire(owner, more)) this.#chargedBytes += more
      else if (this.#item.length > 0) this.#awaitRoom(more)
    }
  }

  #awaitRoom(bytes: number): void {
    const { budget, owner } = this.#deps
    // What exceeds the owner's limit on its own will not fit later either.
    if (this.#heldBytes > budget.limits.heldBytesPerSubscription) return this.#dropItem('heldBytesPerSubscription')
    const limit = budget.exceeded(owner, bytes) ?? 'heldBytes'
    this.#waiting = budget.acquireLater(owner, bytes, (isTaken) => {
      this.#waiting = undefined
      if (isTaken) this.#chargedBytes += bytes
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

  #holdSource(isHeld: boolean): void {
    if (isHeld === this.#isSourcePaused || this.#source === undefined || this.#hasEnded) return
    this.#isSourcePaused = isHeld
    if (isHeld) this.#source.pause()
    else this.#source.resume()
  }

  /** The upstream's array makes no sense from here on. */
  #stop(): void {
    this.#source?.abort()
    this.#endSource()
  }

  #endSource(): void {
    if (this.#hasEnded || this.#isOver) return
    if (this.#isFlowing) {
      // Half of an item has left: cutting the connection is the only way to report that.
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
    this.#isOver = true
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
