import { messageOf } from '../../core/error.ts'
import type { ChildWatcher } from '../../platform/process/child.ts'
import { settledWithin } from '../../platform/process/clock.ts'
import { openSupervised, type Restart, supervise } from '../../platform/process/supervise.ts'
import type { IngestStopReason } from '../metrics.ts'
import { type StoreProcess, startStoreProcess } from '../store/process.ts'
import type { StoreOptions } from '../store/protocol.ts'
import { findOtherChain } from './chain-identity.ts'
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
  /** `opening` while there is no database process: queries fail with a retryable error then. */
  readonly state: 'opening' | 'running' | 'closed'
  /** Whether this process writes; if not, `ingest` is the progress of another process. */
  readonly ingests: boolean
  readonly restarts: number
  readonly storePid: number | undefined
  /** Set while nothing is written: why, since when, and what the database reported. */
  readonly stopped: IngestStopped | undefined
  readonly ingest: IngestStatus | undefined
}

export type IngestStopped = { readonly reason: IngestStopReason; readonly sinceMs: number; readonly message: string }

/** Keeps one database process, and the ingest into it, running. */
export type IngestSupervisor = AsyncDisposable & {
  /** The database process, or undefined while it is being restarted. */
  store(): StoreProcess | undefined
  status(): IngestSupervisorStatus
}

const RESTART = { firstMs: 50, maxMs: 5_000 }
/** How long the start waits for the operator's server, which may still be at work for an earlier process. A file is waited for until it is open. */
const SERVER_MS = 20_000
/** Failures without a written batch between them, after which writing counts as stopped. A single one follows each query that had to be killed. */
const FAILURES_MAX = 3
/** The system's message, DuckDB's and ClickHouse's. */
const DISK_FULL = /no space left on device|ENOSPC|EDQUOT|disk quota exceeded|NOT_ENOUGH_SPACE|Code: 243\b/i

/** Resolves when the database is open for the first time, or the operator's server was tried once or for 20 s; rejects when the file cannot be opened. */
export async function superviseIngest(
  options: {
    readonly store: StoreOptions
    readonly ingest: IngestOptions
    /** File with the identity of the chain that the tables hold; undefined to not check it. */
    readonly chainFile?: string | undefined
  },
  deps: Omit<IngestDeps, 'store'> & { readonly children?: ChildWatcher | undefined },
): Promise<IngestSupervisor> {
  const { clock, random, log, metrics } = deps
  const firstFailure = Promise.withResolvers<void>()
  let ingest: Ingest | undefined
  /** Blocks that the last database process had not written; the next one writes them first. */
  let unwritten: readonly RawBlock[] = []
  let stopped: IngestStopped | undefined
  let otherChain: IngestStopped | undefined
  let failures = 0
  const closing = new AbortController()

  function noteWrite(refused: Error | undefined): void {
    // Other errors end in a restart, which is counted.
    if (refused !== undefined) return DISK_FULL.test(messageOf(refused)) ? noteFailure(refused) : undefined
    failures = 0
    if (stopped !== undefined) log.info({ forMs: clock.nowMs() - stopped.sinceMs }, 'blocks are written again')
    stopped = undefined
  }

  function noteFailure(error: Error): void {
    failures += 1
    const message = messageOf(error)
    const isFull = DISK_FULL.test(message)
    if (!isFull && failures < FAILURES_MAX) return
    const reason = isFull ? 'disk-full' : 'database'
    if (stopped?.reason !== reason) stopped = { reason, message, sinceMs: stopped?.sinceMs ?? clock.nowMs() }
  }

  /** Blocks of another chain never continue the tables: without this check ingest would wait for the link for ever. */
  async function stopOnOtherChain(chainFile: string, areEmpty: boolean): Promise<void> {
    const other = await findOtherChain(chainFile, { areEmpty }, deps, closing.signal)
    if (other === undefined) return
    const message = `the tables are of the chain with genesis ${other.stored}, the nodes of ${other.found}`
    otherChain = { reason: 'other-chain', message, sinceMs: clock.nowMs() }
    log.error({ ...other }, 'the tables are of another chain than the nodes; no blocks are written')
    ingest?.stop()
  }

  let isChecked = false
  function checkChainOnce({ progress }: StoreProcess): void {
    if (isChecked || options.chainFile === undefined) return
    isChecked = true
    stopOnOtherChain(options.chainFile, progress.ranges.length === 0).catch((error: unknown) =>
      log.warn({ err: error }, 'the chain of the tables was not checked'),
    )
  }

  async function openStore(onBroken: (error: Error) => void): Promise<StoreProcess> {
    // A server that is at work for another process may take minutes to respond, which a stop need not wait for.
    const signal = options.store.clickhouse === undefined ? undefined : closing.signal
    const store = await startStoreProcess(options.store, deps.children, signal)
    if (otherChain !== undefined) return store
    checkChainOnce(store)
    const run = startIngest(options.ingest, unwritten, { ...deps, store, onWrite: noteWrite })
    ingest = run
    unwritten = []
    // It resolves only when it is stopped.
    const ended = run.ended.catch((error: unknown) => {
      if (error instanceof IngestBroken) unwritten = error.unwritten
      onBroken((error instanceof IngestBroken ? error.cause : error) as Error)
    })
    return {
      ...store,
      async [Symbol.asyncDispose]() {
        run.stop()
        await ended
        await store[Symbol.asyncDispose]()
      },
    }
  }

  function onRestart({ error, delayMs, failedStarts }: Restart): void {
    metrics.storeRestarts.inc()
    noteFailure(error)
    firstFailure.resolve()
    if (failedStarts > 0) log.error({ err: error, delayMs }, 'the database cannot be opened and is tried again')
    else log.warn({ err: error, delayMs, unwritten: unwritten.length }, 'the database process is restarted')
  }

  const supervised = supervise(
    // The operator must see at once that a file cannot be opened. A server may be down for a while, and the other services need not wait for it.
    { backoff: RESTART, firstStartsMax: options.store.clickhouse === undefined ? 1 : undefined },
    { clock, random, start: (events) => openSupervised(events, () => openStore(events.failed)), onRestart },
  )
  const opened = Promise.race([supervised.started, firstFailure.promise])
  await (options.store.clickhouse === undefined ? opened : settledWithin(opened, SERVER_MS, clock))
  const store = (): StoreProcess | undefined => supervised.instance?.value
  if (store() === undefined && supervised.restarts === 0)
    log.warn({ waitedMs: SERVER_MS }, 'ClickHouse is not ready: the start goes on, and the tables follow when it is')
  return {
    store,
    status: () => ({
      state: supervised.state === 'stopped' ? 'closed' : store() === undefined ? 'opening' : 'running',
      ingests: true,
      restarts: supervised.restarts,
      storePid: store()?.pid,
      stopped: otherChain ?? stopped,
      ingest: ingest?.status(),
    }),
    [Symbol.asyncDispose]() {
      closing.abort()
      return supervised[Symbol.asyncDispose]()
    },
  }
}
