import type { Clock } from '../../core/clock.ts'

/** The delivery of one notification to its subscribers, in short steps. */
export type Delivery = {
  /** Memory held until it is done. */
  readonly bytes: number
  /** Delivers to one subscriber; false when none is left. */
  step(): boolean
}

export type Deliveries = {
  /** Deliveries run in the order they are added. False where too much waits: it is not delivered. */
  add(delivery: Delivery): boolean
}

/** Time for deliveries in one turn of the event loop, whatever the number of subscribers. */
const SLICE_MS = 5
/** Entries of done deliveries are removed this many at a time. */
const DONE_MAX = 1024
/** Bytes of all waiting notifications of a process, of which each gateway thread has its share. */
const WAITING_BYTES_MAX = 64 * 1024 * 1024
/** A thread has at least so many: a notification of a block may have 10 MiB, and the next one comes before it is delivered. */
const WAITING_BYTES_MIN = 16 * 1024 * 1024
/** The most that the minimum takes of the memory of a process, over all threads. */
const MEMORY_SHARE = 1 / 8

/** Bytes of waiting notifications of one of `threads` gateway threads. */
export function waitingBytesMaxOf({
  threads = 1,
  residentBytesMax = Number.POSITIVE_INFINITY,
}: WaitingBytesOptions): number {
  const ofMemory = Math.floor((residentBytesMax * MEMORY_SHARE) / threads)
  return Math.max(Math.floor(WAITING_BYTES_MAX / threads), Math.min(WAITING_BYTES_MIN, ofMemory))
}

export type WaitingBytesOptions = {
  readonly threads?: number | undefined
  /** Memory limit of the process. */
  readonly residentBytesMax?: number | undefined
}

/**
 * Delivers notifications in time slices and yields to the event loop between them. A notification with few subscribers is delivered within
 * `add`.
 */
export function createDeliveries(
  clock: Clock,
  { defer = setImmediate, bytesMax = WAITING_BYTES_MAX }: { defer?: (run: () => void) => void; bytesMax?: number } = {},
): Deliveries {
  /** Done up to `at`. */
  const waiting: (Delivery | undefined)[] = []
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
        // More may wait always, so the entry is freed now.
        waiting[at] = undefined
        at += 1
      }
      isSpent = spentMs + clock.monotonicMs() - startedMs >= SLICE_MS
    }
    spentMs += clock.monotonicMs() - startedMs
    if (at === waiting.length || at >= DONE_MAX) {
      waiting.splice(0, at)
      at = 0
    }
    deferNext()
  }

  /** Continues in the next turn of the event loop, with a full time slice. */
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
