import { type FrameConsumer, SharedFrames } from '../../platform/net/shared-frames.ts'
import type { Deliveries } from './deliveries.ts'
import { spliceFrame } from './splice.ts'

/** Gets notifications under an id of its own. */
export type FanOutSubscriber = {
  readonly id: number
  /** Until it shares the frames of others with the same id. */
  onFrame(frame: Buffer): void
}

/** A notification of a node, and where in it the id stands. */
type Payload = { readonly bytes: Buffer; readonly idFrom: number; readonly idTo: number }

/** The subscribers of one upstream subscription. Each gets every notification under its own id, all other bytes as they came. */
export class FanOut {
  readonly #deliveries: Deliveries
  /** Those who get each frame by itself. */
  readonly #unshared = new Set<FanOutSubscriber>()
  readonly #consumers = new Map<FanOutSubscriber, FrameConsumer<Buffer>>()
  /** Clients count alike, so many of them know the subscription by the same id. */
  readonly #shared = new Map<number, SharedFrames<Buffer>>()
  /** Who is still to get the notification that is being delivered. */
  #dueIds = new Set<number>()
  #due = new Set<FanOutSubscriber>()
  #current: Payload | undefined

  constructor(deliveries: Deliveries) {
    this.#deliveries = deliveries
  }

  add(subscriber: FanOutSubscriber): void {
    this.#unshared.add(subscriber)
  }

  /** From here on it gets its frames together with others of the same id. */
  share(subscriber: FanOutSubscriber, consumer: FrameConsumer<Buffer>): void {
    if (!this.#unshared.delete(subscriber)) return
    const { id } = subscriber
    // It gets the notification that is being delivered once: with the others where they still wait for it, else by itself.
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

  /** Delivers to all, in slices; `onDone` follows the last. False where too much waits: nobody gets it. */
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
      // A frame for nobody is not made: a connection that is closing may have a thousand ids.
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
