import { type FrameConsumer, SharedFrames } from '../../platform/net/shared-frames.ts'
import type { Deliveries } from './deliveries.ts'
import { spliceFrame } from './splice.ts'

/** Receives notifications under its own subscription id. */
export type FanOutSubscriber = {
  readonly id: number
  /** Called until `share` joins it to others with the same id. */
  onFrame(frame: Buffer): void
}

/** A notification of a node, and the offsets of the id in it. */
type Payload = { readonly bytes: Buffer; readonly idFrom: number; readonly idTo: number }

/** The subscribers of one upstream subscription. Each gets every notification under its own id, all other bytes unchanged. */
export class FanOut {
  readonly #deliveries: Deliveries
  /** Subscribers that get each frame separately. */
  readonly #unshared = new Set<FanOutSubscriber>()
  readonly #consumers = new Map<FanOutSubscriber, FrameConsumer<Buffer>>()
  /** By subscription id: connections number their subscriptions from the same id on, so many share frames. */
  readonly #shared = new Map<number, SharedFrames<Buffer>>()
  /** Who has not yet got the notification that is being delivered. */
  #dueIds = new Set<number>()
  #due = new Set<FanOutSubscriber>()
  #current: Payload | undefined

  constructor(deliveries: Deliveries) {
    this.#deliveries = deliveries
  }

  add(subscriber: FanOutSubscriber): void {
    this.#unshared.add(subscriber)
  }

  /** From now on the subscriber gets its frames together with others of the same id. */
  share(subscriber: FanOutSubscriber, consumer: FrameConsumer<Buffer>): void {
    if (!this.#unshared.delete(subscriber)) return
    const { id } = subscriber
    // The notification being delivered must reach it once: with the others where they still wait for it, else separately.
    if (this.#dueIds.has(id)) this.#due.delete(subscriber)
    this.#consumers.set(subscriber, consumer)
    let frames = this.#shared.get(id)
    if (frames === undefined) {
      frames = new SharedFrames((frame) => frame)
      this.#shared.set(id, frames)
    }
    frames.join(consumer)
  }

  remove(subscriber: FanOutSubscriber): void {
    this.#unshared.delete(subscriber)
    this.#due.delete(subscriber)
    const consumer = this.#consumers.get(subscriber)
    const frames = this.#shared.get(subscriber.id)
    if (consumer === undefined || frames === undefined) return
    this.#consumers.delete(subscriber)
    frames.leave(consumer)
    if (frames.size === 0) this.#shared.delete(subscriber.id)
  }

  /** Delivers to all subscribers, in slices, then calls `onDone`. False where too much waits: it is not delivered. */
  push(payload: Payload, onDone?: () => void): boolean {
    return this.#deliveries.add({
      bytes: payload.bytes.length,
      step: () => {
        if (this.#current !== payload) this.#begin(payload)
        if (this.#deliverToNext()) return true
        this.#current = undefined
        onDone?.()
        return false
      },
    })
  }

  #begin(payload: Payload): void {
    this.#current = payload
    this.#dueIds = new Set(this.#shared.keys())
    this.#due = new Set(this.#unshared)
  }

  #deliverToNext(): boolean {
    for (const id of this.#dueIds) {
      this.#dueIds.delete(id)
      const frames = this.#shared.get(id)
      // No frame is built without an open consumer: a closing connection may have a thousand ids.
      if (frames?.hasOpenConsumer !== true) continue
      frames.append(this.#frameOf(id))
      return true
    }
    for (const subscriber of this.#due) {
      this.#due.delete(subscriber)
      subscriber.onFrame(this.#frameOf(subscriber.id))
      return true
    }
    return false
  }

  #frameOf(id: number): Buffer {
    const { bytes, idFrom, idTo } = this.#current as Payload
    return spliceFrame(bytes, idFrom, idTo, String(id))
  }
}
