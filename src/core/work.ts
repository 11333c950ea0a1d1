/**
 * Work that can be interrupted: it yields at points where other work may go on, at most a few milliseconds apart, and
 * returns its result. Ending it early with `return()` stops it.
 */
export type Work<Result> = Generator<undefined, Result>

/** Runs work to its end without interruption. */
export function finish<Result>(work: Work<Result>): Result {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}
