import { createBackoff } from '../../core/backoff.ts'
import type { Timer } from '../../core/clock.ts'
import { type StoreProcess, startStoreProcess } from '../duckdb/process.ts'
import type { StoreOptions } from '../duckdb/protocol.ts'
import {
  type Ingest,
  IngestBroken,
  type IngestDeps,
  type IngestOptions,
  type IngestStatus,
  startIngest,
} from './ingest.ts'
import type { RawBlock } from './raw-block.ts'

export type IngestSupervisorStatus = {
  /** `opening` while there is no database process: queries are answered with a retryable error then. */
  readonly state: 'opening' | 'running' | 'closed'
  /** Whether this process writes; where not, `ingest` tells how far another one has come. */
  readonly ingests: boolean
  readonly restarts: number
  readonly storePid: number | undefined
  readonly ingest: IngestStatus | undefined
}

/** Keeps one database process and the ingest into it alive. */
export type IngestSupervisor = AsyncDisposable & {
  /** The process to ask, or undefined while it is being started again. */
  store(): StoreProcess | undefined
  status(): IngestSupervisorStatus
}

const RESTART = { firstMs: 50, maxMs: 5_000 }

/** Resolves when the database is open for the first time, or the operator's server was tried once; rejects when the file cannot be opened. */
export async function keepIngesting(
  options: { readonly store: StoreOptions; readonly ingest: IngestOptions },
  deps: Omit<IngestDeps, 'store'>,
): Promise<IngestSupervisor> {
  const { clock, log, metrics } = deps
  const backoff = createBackoff(RESTART, deps.random)
  let store: StoreProcess | undefined
  let ingest: Ingest | undefined
  let timer: Timer | undefined
  let restarts = 0
  let isClosed = false
  let finished = Promise.resolve()

  /** One life of the database process, from open to its end. */
  async function live(opened: StoreProcess, carried: readonly RawBlock[]): Promise<void> {
    store = opened
    const run = startIngest(options.ingest, carried, { ...deps, store: opened })
    ingest = run
    let unwritten: readonly RawBlock[] = []
    try {
      await run.ended
    } catch (error) {
      const cause = error instanceof IngestBroken ? error.cause : error
      if (error instanceof IngestBroken) unwritten = error.unwritten
      if (!isClosed) log.warn({ err: cause, unwritten: unwritten.length }, 'database process is started again')
    }
    store = undefined
    await opened[Symbol.asyncDispose]()
    if (!isClosed) again(unwritten)
  }

  function again(carried: readonly RawBlock[]): void {
    restarts++
    metrics.storeRestarts.inc()
    timer = clock.setTimer(backoff.nextMs(), () => {
      finished = startStoreProcess(options.store).then(
        (opened) => {
          backoff.reset()
          return isClosed ? opened[Symbol.asyncDispose]() : live(opened, carried)
        },
        (error: unknown) => {
          log.error({ err: error }, 'the database cannot be opened; trying again')
          if (!isClosed) again(carried)
        },
      )
    })
  }

  try {
    finished = live(await startStoreProcess(options.store), [])
  } catch (error) {
    // A file that cannot be opened is for the operator to see at once. A server may be away for a while, and the other services need not wait.
    if (options.store.clickhouse === undefined) throw error
    log.error({ err: error }, 'the database cannot be opened; trying again')
    again([])
  }
  return {
    store: () => store,
    status: () => ({
      state: isClosed ? 'closed' : store === undefined ? 'opening' : 'running',
      ingests: true,
      restarts,
      storePid: store?.pid,
      ingest: ingest?.status(),
    }),
    async [Symbol.asyncDispose]() {
      isClosed = true
      timer?.cancel()
      ingest?.stop()
      await finished
    },
  }
}
