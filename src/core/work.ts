import assert from 'node:assert/strict'

/**
 * Interruptible work: it yields every few milliseconds at most, so that other work can run, and returns its result.
 * `return()` stops it early.
 */
export type Work<Result> = Generator<undefined, Result>

/** Work that also waits: where it yields a promise, which never rejects, it continues once that is resolved. */
export type WaitingWork<Result> = Generator<Promise<void> | undefined, Result>

/** Runs work to its end without interruption. */
export function finish<Result>(work: WaitingWork<Result>): Result {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    assert(step.value === undefined, 'this work does not wait')
  }
}
