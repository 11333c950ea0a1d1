import { dirname, join } from 'node:path'
import type { Access } from '../access/call-access.ts'
import type { ListenerKey } from '../contract/listener-option.ts'
import type { HeldBytes } from '../platform/http/held-bytes.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { ChildWatcher } from '../platform/process/child.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import type { RefusalRecorder } from '../platform/telemetry/refusal-log.ts'
import type { Upstream } from '../upstreams/upstream.ts'
import { type ClickHouseAccountsSource, openClickHouseAccounts } from './clickhouse/accounts.ts'
import { createClickHouseProxy } from './clickhouse/proxy.ts'
import type { ClickHouseStoreOptions } from './clickhouse/store.ts'
import { startIndexerServer } from './http.ts'
import { type Backfill, type BackfillStatus, startBackfill } from './ingest/backfill.ts'
import { createBlockFetch } from './ingest/block-fetch.ts'
import { followCoverage } from './ingest/follow-coverage.ts'
import { chainTip } from './ingest/ingest.ts'
import type { SlotRange } from './ingest/slot-ranges.ts'
import { type IngestSupervisor, type IngestSupervisorStatus, superviseIngest } from './ingest/supervise.ts'
import { type IngestStopReason, indexerMetrics } from './metrics.ts'
import type { IndexerOptions } from './options.ts'
import { createQueryExecutor } from './query/executor.ts'
import { collectResult } from './query/result.ts'
import type { StoreOptions } from './store/protocol.ts'

export type IndexerDeps = BaseDeps & {
  readonly access: Access
  readonly upstream: Pick<Upstream, 'forwardAsync' | 'each' | 'grpc' | 'bestSlot' | 'isAvailable'>
  readonly registry: MetricsRegistry
  readonly listenerMetrics: ListenerMetrics
  /** Bytes of requests that the process holds. */
  readonly heldBytes: HeldBytes
  /** Notified when writing stops. */
  readonly lifecycle?: Pick<Lifecycle, 'degraded' | 'recovered'>
  readonly refusals?: RefusalRecorder | undefined
  /** Notified of the database process. */
  readonly children?: ChildWatcher | undefined
}

/** How often it is checked whether blocks are written. */
const HEALTH_MS = 1000

export type Indexer = AsyncDisposable & {
  readonly address: { readonly host: string; readonly port: number }
  status(): IngestSupervisorStatus & { readonly runningQueries: number; readonly backfill: BackfillStatus | undefined }
  /** Writes a range of older blocks, up to the tip of the chain. One backfill runs at a time. */
  backfill(range: SlotRange): 'started' | 'busy' | 'beyond-tip' | 'not-here' | 'other-chain'
  stopBackfill(): void
  /** Runs a query of the operator under the same rules as a customer's. Rejects with QueryError. */
  query(query: string, format: string): Promise<{ readonly body: Uint8Array }>
  beginLameDuck(): void
  drain(deadlineMs: number): Promise<void>
}

/** Writes blocks from a node into tables and serves SQL over HTTP. The database runs in a child process. */
export async function startIndexer(
  options: Omit<IndexerOptions, ListenerKey | 'enabled' | 'engine' | 'clickhouse'>,
  environment: {
    readonly listener: ListenerOptions
    /** File of the embedded database. */
    readonly dataFile: string
    /** How little memory the embedded database keeps at rest. */
    readonly atRest?: Pick<StoreOptions, 'logTextBytesMax' | 'idleBytesMax'> | undefined
    /** The operator's server, in place of the embedded database. */
    readonly clickhouse?: ClickHouseStoreOptions | undefined
    readonly accounts?: ClickHouseAccountsSource | undefined
    readonly displayName: string
  },
  deps: IndexerDeps,
): Promise<Indexer> {
  const { access, upstream, clock, random, listenerMetrics } = deps
  const log = deps.log.child({ part: 'indexer' })
  /** Read by the metrics, which are registered first. */
  const readings: { supervisor?: IngestSupervisor } = {}
  const metrics = indexerMetrics(deps.registry, {
    headSlot: () => readings.supervisor?.status().ingest?.headSlot,
    tipSlot: () => readings.supervisor?.status().ingest?.tipSlot ?? chainTip(upstream),
    stopped: () => readings.supervisor?.status().stopped?.reason,
  })
  const { store, ingest, query } = options
  await using opening = new AsyncDisposableStack()

  const supervisor = opening.use(await openSupervisor())
  readings.supervisor = supervisor
  opening.use(clock.setRepeating(HEALTH_MS, reportStopped))
  const engine = openEngine()
  const runner = opening.use('executor' in engine ? engine.executor : engine.proxy)
  const server = opening.use(
    await startIndexerServer(
      {
        listen: environment.listener,
        limits: query,
        readSecondsMax: query.readSecondsMax,
        sessions: query,
        displayName: environment.displayName,
        tokenInPassword: options.tokenInPassword,
        corsOrigins: options.corsOrigins,
        trustedProxies: options.trustedProxies,
      },
      {
        access,
        engine,
        coverageSlot: () => supervisor.status().ingest?.headSlot ?? 0,
        metrics,
        log,
        clock,
        random,
        heldBytes: deps.heldBytes,
        refusals: deps.refusals,
        ...listenerMetrics,
      },
    ),
  )

  /** Starts ingest, or follows the progress of another process that writes into the same server. */
  async function openSupervisor(): Promise<IngestSupervisor> {
    if (!ingest.enabled && environment.clickhouse !== undefined)
      return followCoverage(environment.clickhouse, { clock, log, upstream })
    return superviseIngest(
      {
        store: {
          clickhouse: environment.clickhouse,
          path: environment.dataFile,
          memoryBytes: store.memoryBytes,
          ...environment.atRest,
          threads: store.threads,
          rows: { includeVotes: options.includeVotes, includeLogs: options.includeLogs },
          results: query,
        },
        ingest: {
          includeAccounts: options.includeAccounts,
          batchBlocks: ingest.batchBlocks,
          batchMs: ingest.batchMs,
          heldMax: ingest.heldBlocksMax,
          fill: { parallel: ingest.fetchParallel, blocksMax: Math.ceil(ingest.heldBlocksMax / 2) },
        },
        // The tables of the operator's server are the operator's to check.
        chainFile: environment.clickhouse === undefined ? join(dirname(environment.dataFile), 'genesis') : undefined,
      },
      { upstream, clock, random, log, metrics, children: deps.children },
    )
  }

  function reportStopped(): void {
    const { stopped, state } = supervisor.status()
    if (stopped === undefined && state !== 'opening') return deps.lifecycle?.recovered('indexer')
    if (stopped === undefined)
      return deps.lifecycle?.degraded('indexer', 'writes no blocks: the database is not open yet; queries are refused')
    const queries = state === 'running' ? 'queries continue' : 'queries are refused until the database can be opened'
    const place = environment.clickhouse?.url ?? `${dirname(environment.dataFile)} (${environment.dataFile})`
    const reasons: Record<IngestStopReason, string> = {
      'disk-full': `no space is left on ${place}`,
      database: `the database fails: ${stopped.message}`,
      'other-chain': `${stopped.message}; correct upstreams.nodes, or move ${dirname(environment.dataFile)} away for new tables, and restart`,
    }
    deps.lifecycle?.degraded('indexer', `writes no blocks: ${reasons[stopped.reason]}; ${queries}`)
  }

  /** Opens what runs the queries: the executor of the embedded database, or the proxy of the operator's server. */
  function openEngine() {
    if (environment.clickhouse === undefined) {
      const limits = { ...query, residentBytesMax: store.residentBytesMax }
      return { executor: createQueryExecutor(limits, { store: supervisor.store, clock, log, metrics }) }
    }
    const { database } = environment.clickhouse
    const granted = { database, limits: query, concurrent: query.concurrentPerSubscription }
    const accounts =
      environment.accounts && opening.use(openClickHouseAccounts(environment.accounts, granted, { access, log, clock }))
    const target = { ...query, ...environment.clickhouse, limits: query }
    return { proxy: createClickHouseProxy(target, { clock, random, log, metrics, accounts }) }
  }

  let backfill: Backfill | undefined
  opening.defer(() => backfill?.stop())
  const opened = opening.move()
  return {
    address: server.address,
    status: () => ({ ...supervisor.status(), runningQueries: runner.running, backfill: backfill?.status() }),
    backfill(requested) {
      if (!supervisor.status().ingests) return 'not-here'
      if (supervisor.status().stopped?.reason === 'other-chain') return 'other-chain'
      if (backfill?.status().state === 'running') return 'busy'
      // There are no blocks beyond the tip.
      const range = { from: requested.from, to: Math.min(requested.to, supervisor.status().ingest?.tipSlot ?? 0) }
      if (range.from > range.to) return 'beyond-tip'
      backfill = startBackfill(range, {
        fetch: createBlockFetch(upstream, 'finalized'),
        store: supervisor.store,
        clock,
        log,
      })
      return 'started'
    },
    stopBackfill: () => backfill?.stop(),
    async query(text, format) {
      if ('proxy' in engine) return engine.proxy.query(text, format)
      const job = { query: text, parameters: {}, defaultFormat: format, settings: {}, limits: query }
      using result = await engine.executor.run('operator', job, new AbortController().signal)
      return { body: await collectResult(result) }
    },
    beginLameDuck: () => server.beginLameDuck(),
    drain: (deadlineMs) => server.drain(deadlineMs),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
