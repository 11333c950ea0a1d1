import type { Clock } from '../../core/clock.ts'

/** One notification on its way to its subscribers, delivered in short steps. */
export type Delivery = {
  /** What it keeps in memory until it is done. */
  readonly bytes: number
  /** Delivers to one subscriber; false when none is left. */
  step(): boolean
}

export type Deliveries = {
  /** Delivered in the order they are added. False where too much waits already: it is not delivered. */
  add(delivery: Delivery): boolean
}

/** Deliveries take so much of one turn of the event loop, whatever the number of subscribers. */
const SLICE_MS = 5
/** Of all notifications that wait together. */
const WAITING_BYTES_MAX = 64 * 1024 * 1024

/**
 * Delivers notifications in slices, between which the event loop serves other connections. A notification with few subscribers is delivered
 * within `add`.
 */
export function createDeliveries(
  clock: Clock,
  { defer = setImmediate, bytesMax = WAITING_BYTES_MAX }: { defer?: (run: () => void) => void; bytesMax?: number } = {},
): Deliveries {
  const waiting: Delivery[] = []
  let at = 0
  let bytes = 0
  let spentMs = 0
  let isDeferred = false

  function run(): void {
    const startedMs = clock.monotonicMs()
    let isSpent = spentMs >= SLICE_MS
    while (!isSpent && at < waiting.length) {
      const delivery = waiting[at] as Delivery
      if (!delivery.step()) {
        bytes -= delivery.bytes
        at += 1
      }
      isSpent = spentMs + clock.monotonicMs() - startedMs >= SLICE_MS
    }
    spentMs += clock.monotonicMs() - startedMs
    if (at === waiting.length) {
      waiting.length = 0
      at = 0
    }
    deferNext()
  }

  /** The budget of a turn is whole again in the next one, where the rest goes on. */
  function deferNext(): void {
    if (isDeferred) return
    isDeferred = true
    defer(() => {
      isDeferred = false
      spentMs = 0
      if (waiting.length > 0) run()
    })
  }

  return {
    add(delivery) {
      if (waiting.length > 0 && bytes + delivery.bytes > bytesMax) return false
      waiting.push(delivery)
      bytes += delivery.bytes
      if (waiting.length - at === 1) run()
      return true
    },
  }
}
