/**
 * Interruptible work: it yields every few milliseconds at most, so that other work can run, and returns its result.
 * `return()` stops it early.
 */
export type Work<Result> = Generator<undefined, Result>

/** Runs work to its end without interruption. */
export function finish<Result>(work: Work<Result>): Result {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}
