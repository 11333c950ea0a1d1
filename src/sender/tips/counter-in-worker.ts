import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { type Supervised, supervise } from '../../platform/process/supervise.ts'
import { startWorker, type WorkerThread } from '../../platform/process/worker.ts'
import { openTipCounter, type TipCounter, type TipEvent } from './counter.ts'
import type { FromCounter, ToCounter } from './counter-thread.ts'
import { openLedgerFile } from './ledger-file.ts'

export type CounterInWorkerDeps = BaseDeps & {
  /** The file of the thread; tests pass one that dies. */
  readonly entry?: URL
}

const RESTART = { firstMs: 1000, maxMs: 30_000 }
const RESET_AFTER_MS = 30_000
const THREAD = new URL('./counter-thread.ts', import.meta.url)

type Counting = { readonly batch: readonly TipEvent[]; readonly done: PromiseWithResolvers<void> }

/** Counts in a thread, which starts with the first batch. Opens the ledger of the folder first, so that a damaged file is reported at the start. */
export async function openCounterInWorker(folder: string, deps: CounterInWorkerDeps): Promise<TipCounter> {
  const { clock, random, log, entry = THREAD } = deps
  let countedMs: number
  {
    await using counter = await openTipCounter(await openLedgerFile(folder, deps), clock)
    countedMs = counter.countedMs
  }
  let thread: Supervised<WorkerThread<ToCounter>> | undefined
  let counting: Counting | undefined

  function settle(error?: Error): void {
    const { done } = counting ?? {}
    counting = undefined
    if (error === undefined) done?.resolve()
    else done?.reject(error)
  }

  function startThread(): Supervised<WorkerThread<ToCounter>> {
    return supervise(
      { backoff: RESTART, resetAfterMs: RESET_AFTER_MS },
      {
        clock,
        random,
        start: (events) =>
          startWorker<ToCounter, FromCounter>(entry, folder, {
            onMessage(message) {
              if (message.kind === 'ready') {
                events.ready()
                // It came before the thread was ready.
                if (counting !== undefined) thread?.instance?.post(counting.batch)
              } else if (message.kind === 'counted') {
                countedMs = message.countedMs
                settle()
              } else settle(new Error(message.message))
            },
            onDeath(error) {
              events.failed(error)
              settle(error)
            },
          }),
        onRestart: ({ error, delayMs }) =>
          log.error({ err: error, delayMs }, 'the thread that counts tips died and is restarted'),
      },
    )
  }

  return {
    get countedMs() {
      return countedMs
    },
    count(batch) {
      const done = Promise.withResolvers<void>()
      counting = { batch, done }
      thread ??= startThread()
      if (thread.state === 'running') thread.instance?.post(batch)
      else if (thread.state === 'waiting') settle(new Error('the thread that counts tips died and is being restarted'))
      return done.promise
    },
    async [Symbol.asyncDispose]() {
      await thread?.[Symbol.asyncDispose]()
      settle(new Error('the tip ledger is closed'))
    },
  }
}
