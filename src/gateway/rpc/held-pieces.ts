import type { HeldBytesLimit } from '../../platform/http/held-bytes.ts'

/** Pieces of a response in memory, and the sum of their bytes. */
export class HeldPieces {
  readonly #pieces: Buffer[] = []
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0
  }

  push(piece: Buffer): void {
    this.#pieces.push(piece)
    this.#bytes += piece.length
  }

  moveTo(other: HeldPieces): void {
    for (const piece of this.#pieces) other.push(piece)
    this.clear()
  }

  /** The first pieces, as many as `bytesMax` allows, but at least one. */
  takeUpTo(bytesMax: number): Buffer {
    let count = 0
    let bytes = 0
    do bytes += (this.#pieces[count++] as Buffer).length
    while (count < this.#pieces.length && bytes + (this.#pieces[count] as Buffer).length <= bytesMax)
    const taken = this.#pieces.splice(0, count)
    this.#bytes -= bytes
    return count === 1 ? (taken[0] as Buffer) : Buffer.concat(taken)
  }

  clear(): void {
    this.#pieces.length = 0
    this.#bytes = 0
  }
}

/** Items that arrived before their turn, by `sentId`; the limit in place of one that was dropped. */
export class EarlyItems {
  readonly #items = new Map<string, HeldPieces | HeldBytesLimit>()
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  has(sentId: string): boolean {
    return this.#items.has(sentId)
  }

  /** At most once for each `sentId`. */
  add(sentId: string, item: HeldPieces | HeldBytesLimit): void {
    this.#items.set(sentId, item)
    if (typeof item === 'object') this.#bytes += item.bytes
  }

  take(sentId: string): HeldPieces | HeldBytesLimit | undefined {
    const item = this.#items.get(sentId)
    this.#items.delete(sentId)
    if (typeof item === 'object') this.#bytes -= item.bytes
    return item
  }

  clear(): void {
    this.#items.clear()
    this.#bytes = 0
  }
}
