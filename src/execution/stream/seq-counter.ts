import assert from 'node:assert/strict'

/** Where the highest number that may be in use is kept across restarts. */
export type SeqStore = {
  /** Undefined when nothing was kept yet. */
  read(): number | undefined
  /** On the disk when it returns. */
  write(limit: number): void
}

export type SeqCounter = {
  /** Takes the next number. */
  next(): number
  /** What `next` will give. */
  readonly upcoming: number
}

/** Numbers reserved at a time: one write to the disk for each million frames. */
const STEP = 1_000_000

/**
 * Numbers that never come twice, so that an old cursor can never match new data. The store holds a limit above every number given out;
 * a new process begins behind it. Without a store, or with an unreadable one, numbers begin with the clock in microseconds, far above
 * what one number a frame could have reached.
 */
export function createSeqCounter(deps: {
  readonly store: SeqStore
  readonly nowMs: () => number
  readonly onFault: (error: unknown) => void
}): SeqCounter {
  const { store, nowMs, onFault } = deps
  const kept = attempt(() => store.read())
  // One number is left out, so that even the cursor just before the first new frame was never given out.
  let upcoming = kept === undefined ? Math.floor(nowMs() * 1000) : kept + 2
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
      assert(upcoming < Number.MAX_SAFE_INTEGER, 'numbers stay below 2^53')
      return upcoming++
    },
    get upcoming() {
      return upcoming
    },
  }
}
