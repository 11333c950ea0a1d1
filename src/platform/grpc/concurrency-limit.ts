export type ConcurrencyLimit = {
  /** Starts the task now, or when earlier ones have finished, in the order of the calls. */
  run<Result>(task: () => Promise<Result>): Promise<Result>
  readonly running: number
}

/** At most this many tasks at once; the others wait. Callers bound how many wait, for example one for each open stream. */
export function createConcurrencyLimit(runningMax: number): ConcurrencyLimit {
  const waiting: (() => void)[] = []
  let running = 0

  function start(): Promise<void> {
    if (running < runningMax) {
      running += 1
      return Promise.resolve()
    }
    return new Promise((resolve) => void waiting.push(resolve))
  }

  function finish(): void {
    const next = waiting.shift()
    // The permit goes to the next waiting task, so that no later call takes it first.
    if (next === undefined) running -= 1
    else next()
  }

  return {
    async run(task) {
      await start()
      try {
        return await task()
      } finally {
        finish()
      }
    },
    get running() {
      return running
    },
  }
}
