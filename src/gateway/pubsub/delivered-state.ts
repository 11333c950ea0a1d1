import { accountDigest, type Missed, resultDigest } from './catch-up.ts'
import { isOfDeletedAccount } from './deleted-account.ts'
import type { PubSubKind } from './request.ts'
import { slotOf } from './splice.ts'

/** Kinds whose slots only increase at one node; after a loss lower slots are repetitions. */
const INCREASING: ReadonlySet<PubSubKind> = new Set(['account', 'program', 'logs', 'slot', 'root', 'block'])

/** What the subscribers of one upstream subscription have, to recognize what is older or a repetition after the loss of a node. */
export class DeliveredState {
  readonly #isIncreasing: boolean
  readonly #topic: { readonly kind: PubSubKind; readonly params: string }
  /** Slots further back are of a chain that was reset. */
  readonly #lagSlotsMax: () => number
  #lastSlot: number | undefined
  #lastAccount: string | undefined
  /** The last notification was of an account that exists. */
  #hasAccount = false
  /** The last slot delivered before a loss, or read after it, until the new node has reached it. */
  #minSlot: number | undefined

  constructor(topic: { readonly kind: PubSubKind; readonly params: string }, lagSlotsMax: () => number) {
    this.#topic = topic
    this.#isIncreasing = INCREASING.has(topic.kind)
    this.#lagSlotsMax = lagSlotsMax
  }

  get lastSlot(): number | undefined {
    return this.#lastSlot
  }

  /** Another node continues. */
  onNodeChange(): void {
    if (this.#isIncreasing) this.#minSlot = this.#lastSlot
  }

  /** False where the notification repeats what was delivered before a loss. */
  receiveNotification(frame: Buffer, idFrom: number): boolean {
    const { kind } = this.#topic
    const slot = slotOf(kind, frame)
    if (slot !== undefined && this.#isIncreasing) {
      if (this.#minSlot !== undefined && slot < this.#minSlot && slot >= this.#minSlot - this.#lagSlotsMax())
        return false
      this.#minSlot = undefined
      this.#lastSlot = slot
    }
    if (kind === 'account') {
      this.#lastAccount = accountDigest(frame, idFrom)
      this.#hasAccount = !isOfDeletedAccount(frame)
    }
    return true
  }

  /** How state that was read after a loss compares to what was delivered. */
  receiveMissed({ result, slot, isLast, isDeleted = false }: Missed): 'older' | 'known' | 'new' {
    if (this.#lastSlot !== undefined && slot < this.#lastSlot) return 'older'
    // Nodes do not notify that an account never existed.
    if (isDeleted && !this.#hasAccount) return 'known'
    if (!isLast) {
      this.#hasAccount = !isDeleted
      const digest = resultDigest(result)
      if (digest !== undefined && digest === this.#lastAccount) return 'known'
      this.#lastAccount = digest
    }
    this.#lastSlot = slot
    // The node that was read may be ahead of the one that notifies. Processed state may be of a fork that is dropped: then the other node is right.
    if (this.#isIncreasing && !this.#topic.params.includes('"processed"')) this.#minSlot = slot
    return 'new'
  }
}
