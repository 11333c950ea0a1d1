import assert from 'node:assert/strict'

/** Persistent storage of the highest sequence number that may be in use. */
export type SeqStore = {
  /** Undefined when nothing was stored yet. */
  read(): number | undefined
  /** Durable when it returns. */
  write(limit: number): void
}

export type SeqCounter = {
  /** Returns the next number. */
  next(): number
  /** The number that `next` will return. */
  readonly upcoming: number
}

/** Numbers reserved at a time: one disk write per million frames. */
const STEP = 1_000_000
/** After a failed write the disk is not used for so long. */
const RETRY_MS = 10_000
/** The clock in microseconds reaches it in 2112. A later date is an error of the clock; at least half of the numbers below 2^53 remain. */
const CLOCK_MAX = 2 ** 52

/**
 * Sequence numbers that are never reused, so that an old cursor never matches new data. The store holds a limit above every number
 * returned; a new process starts after it, and not below the clock in microseconds. The clock covers what the store does not: frames are
 * far fewer than one per microsecond, so a later start is above the numbers of an earlier one also if their limit could not be read or
 * written, unless the clock was set back by more than that run lasted.
 */
export function createSeqCounter(deps: {
  readonly store: SeqStore
  readonly nowMs: () => number
  /** The store cannot be read, or not be written; the first failure in a row is reported. */
  readonly onFault: (error: unknown) => void
}): SeqCounter {
  const { store, nowMs, onFault } = deps
  // One number is skipped, so that the cursor just before the first new frame was never returned either.
  let upcoming = Math.max((stored() ?? 0) + 2, Math.min(Math.floor(nowMs() * 1000), CLOCK_MAX))
  let limit = upcoming - 1
  /** When the last write failed; undefined when it did not. */
  let failedMs: number | undefined

  function stored(): number | undefined {
    try {
      return store.read()
    } catch (error) {
      onFault(error)
      return undefined
    }
  }

  /** Stores a limit above the upcoming number. A disk that is full or gone does not stop the stream: it is tried again. */
  function reserve(): void {
    const now = nowMs()
    // The clock may be set in either direction.
    if (failedMs !== undefined && Math.abs(now - failedMs) < RETRY_MS) return
    try {
      store.write(upcoming + STEP)
      limit = upcoming + STEP
      failedMs = undefined
    } catch (error) {
      if (failedMs === undefined) onFault(error)
      failedMs = now
    }
  }

  return {
    next() {
      if (upcoming > limit) reserve()
      assert(upcoming < Number.MAX_SAFE_INTEGER, 'sequence numbers stay below 2^53')
      return upcoming++
    },
    get upcoming() {
      return upcoming
    },
  }
}
