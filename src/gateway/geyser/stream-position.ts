/** A slot has updates until it is finalized, 32 slots later; the slot of a node is known to within a few slots. */
export const SET_BACK_SLOTS = 40

/** The bytes of one read of a stream. */
export type StreamPiece = {
  /** Slot of the last update that was read; undefined where none was. */
  readonly slot: number | undefined
  readonly messages: number
  /** It has an update whose slot could not be read. */
  readonly hasUnread: boolean
}

/**
 * How far a Subscribe stream has come at its node: the slot from which another node has to continue so that nothing is missing.
 *
 * Its updates show that. Where the filters match little, a ping that comes alone does too: nothing waits behind it, so the stream is where its
 * node is. The node's slot is no good measure otherwise, and is used only for updates that cannot be read, such as compressed ones: a stream may be far
 * behind it, because it replays past slots or its client reads slowly.
 */
export class StreamPosition {
  /** Set where the node was asked for past slots: the first of them. The stream needs nothing older. */
  #fromSlot: number | undefined
  /** The slot of the node when the stream was opened: older updates may be those of a replay. */
  #openedAt: number
  #seen: number | undefined
  /** The node's slot at the last ping or unread update, where no other update came since. */
  #idleAt: number | undefined

  constructor(nodeSlot: number) {
    this.#openedAt = nodeSlot
  }

  /** A node was asked for the updates from a slot on, or for those to come. */
  open(fromSlot: number | undefined, nodeSlot: number): void {
    // From a slot to come a node sends what a request without it gets.
    this.#fromSlot = fromSlot !== undefined && fromSlot <= nodeSlot ? fromSlot : undefined
    this.#openedAt = nodeSlot
    this.#seen = undefined
    this.#idleAt = undefined
  }

  onPiece({ slot, messages, hasUnread }: StreamPiece, nodeSlot: number): void {
    if (slot !== undefined) {
      this.#idleAt = undefined
      // A replay goes through the slots in order; in a live stream an update may be about an older slot.
      const isReplayed = this.#fromSlot !== undefined && slot < this.#openedAt
      this.#seen = isReplayed ? slot : Math.max(this.#seen ?? 0, slot)
      return
    }
    if ((messages === 1 || hasUnread) && !this.#mayReplay(nodeSlot)) this.#idleAt = nodeSlot
  }

  get nextFromSlot(): number {
    const reached = this.#idleAt === undefined ? this.#seen : Math.max(this.#idleAt, this.#seen ?? 0)
    if (reached === undefined && this.#fromSlot !== undefined) return this.#fromSlot
    return Math.max(this.#fromSlot ?? 0, (reached ?? this.#openedAt) - SET_BACK_SLOTS, 0)
  }

  /** A node pings during a replay too. Once it is this much further, a replay without updates is over. */
  #mayReplay(nodeSlot: number): boolean {
    if (this.#fromSlot === undefined || (this.#seen ?? 0) >= this.#openedAt) return false
    return nodeSlot < this.#openedAt + SET_BACK_SLOTS
  }
}
