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

/**
 * Sequence numbers that are never reused, so that an old cursor never matches new data. The store holds a limit above every number
 * returned; a new process starts after it. Without a readable store, numbers start with the clock in microseconds, far above any number
 * that was in use.
 */
export function createSeqCounter(deps: {
  readonly store: SeqStore
  readonly nowMs: () => number
  readonly onFault: (error: unknown) => void
}): SeqCounter {
  const { store, nowMs, onFault } = deps
  const stored = attempt(() => store.read())
  // One number is skipped, so that the cursor just before the first new frame was never returned either.
  let upcoming = stored === undefined ? Math.floor(nowMs() * 1000) : stored + 2
  let limit = upcoming - 1

  function attempt<Value>(run: () => Value): Value | undefined {
    try {
      return run()
    } catch (error) {
      onFault(error)
      return undefined
    }
  }

  function reserve(): void {
    limit = upcoming + STEP
    attempt(() => store.write(limit))
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
