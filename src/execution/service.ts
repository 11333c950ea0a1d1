import type { Access } from '../access/service.ts'
import type { DocsUrl } from '../contract/errors.ts'
import { isExecutionMetric } from '../contract/execution-routes.ts'
import { AVAILABLE_FILTERS } from '../contract/stream-events.ts'
import type { StaticFiles } from '../platform/http/server/static-file.ts'
import { createClientAddress } from '../platform/net/client-address.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import { processTimeMs } from '../platform/process/worker.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import type { RefusalRecorder } from '../platform/telemetry/refusal-log.ts'
import { createCrossOrigin } from './api/cross-origin.ts'
import { startHttpEndpoint } from './api/http.ts'
import { Views } from './api/views.ts'
import { createWorkBudget } from './api/work-budget.ts'
import type { BlockArchive } from './archive/archive.ts'
import { createHistoryDocument } from './history/document.ts'
import type { History } from './history/history.ts'
import type { ExecutionMetrics } from './metrics.ts'
import type { ExecutionOptions } from './options.ts'
import { BlockStore } from './rpc/block-store.ts'
import { Blocks } from './rpc/blocks.ts'
import { createRpc } from './rpc/rpc.ts'
import type { LastEvent } from './source/last-event.ts'
import { watchLiveness } from './source/liveness.ts'
import type { Source, StartSource } from './source/message.ts'
import type { Wanted } from './source/wanted-events.ts'
import { type HelloFacts, StreamHub } from './stream/hub.ts'
import { RESUME_BYTES } from './stream/resume-buffer.ts'
import { createSeqCounter, type SeqStore } from './stream/seq-counter.ts'
import { MessageIntake } from './stream/take-messages.ts'
import { createWsEndpoint, type WsServerOptions } from './stream/ws.ts'

export type ExecutionSettings = Omit<
  ExecutionOptions,
  | 'enabled'
  | 'listen'
  | 'tls'
  | 'plaintext'
  | 'publicUrl'
  | 'ring'
  | 'ringStart'
  | 'ringRead'
  | 'node'
  | 'simulated'
  | 'history'
> & {
  readonly listen: ListenerOptions
  readonly ws?: Pick<WsServerOptions, 'countsLoopback'>
}

export type ExecutionDeps = BaseDeps &
  ListenerMetrics & {
    readonly version: string
    readonly registry: Pick<MetricsRegistry, 'text' | 'contentType'>
    readonly metrics: ExecutionMetrics
    readonly access: Access
    readonly seqStore: SeqStore
    /** Outlives the service. */
    readonly lastEvent: LastEvent
    readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>
    readonly startSource: StartSource
    /** Blocks on disk; without it JSON-RPC has those in memory only. */
    readonly archive?: BlockArchive | undefined
    /** Outlives the service. */
    readonly history: History
    /** Names of contracts by address. */
    readonly names?: ReadonlyMap<string, string> | undefined
    readonly refusals?: RefusalRecorder | undefined
    /** Files of the dashboard. */
    readonly page?: StaticFiles | undefined
    /** Served under `/docs`. */
    readonly documents?: StaticFiles | undefined
    /** Pages of errors; errors have no `docs_url` where it is missing. */
    readonly docsUrl?: DocsUrl | undefined
  }

export type Execution = AsyncDisposable & {
  readonly address: { readonly host: string; readonly port: number }
  /** Resolves when the service has ended because its source was silent for 30 s. */
  readonly ended: Promise<void>
  status(): { status: 'healthy' | 'degraded'; blockNumber: number; connections: number; failure: string | undefined }
  beginLameDuck(): void
  /** Closes WebSockets with 1012, finishes responses in flight, closes the listener. */
  drain(deadlineMs: number): Promise<void>
}

/** How long /health responds with 503 before the service ends, so that pollers see it. */
const LAME_DUCK_MS = 5000
/** Deadline for closing connections after that. */
const END_MS = 5000

/** Reads a source of events, keeps views of it, publishes the stream, and serves WebSocket, REST, JSON-RPC and the page. */
export async function startExecution(options: ExecutionSettings, deps: ExecutionDeps): Promise<Execution> {
  const { clock, metrics, access, archive, history } = deps
  const log = deps.log.child({ part: 'execution' })
  await using opening = new AsyncDisposableStack()
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  /** Clients may subscribe to raw events before the source has started. */
  const now: { source?: Source; wanted?: Wanted } = {}

  const liveness = opening.use(watchLiveness({ clock, lastEvent: deps.lastEvent, onHealth, onSilent }))
  const views = new Views()
  const { heldMax: blocksMax, bytesMax } = options.blocks
  const memory = new BlockStore({ blocksMax, bytesMax }, { stageOf: (id) => views.lifecycle.stageOf(id) })
  const blocks = new Blocks(memory, archive)
  const rules = { itemsMax: options.subscribeItemsMax, blocked: new Set(options.blockedEvents) }
  const onFault = (err: unknown) => log.error({ err }, 'cannot write the stream sequence numbers to disk')
  const hub = opening.use(
    new StreamHub(
      {
        buffer: {
          ...options.resume,
          bytesMax: options.resume.bytesMax ?? RESUME_BYTES,
          keepsDeflated: options.wsCompression,
        },
        client: options.client,
        rules,
        lingerMs: options.resume.eventsLingerMs,
      },
      {
        clock,
        seq: createSeqCounter({ store: deps.seqStore, nowMs: clock.nowMs, onFault }),
        defer: deferFlush,
        hello,
        snapshot: (kind) => views.snapshot(kind),
        onWanted(wanted) {
          now.wanted = wanted
          now.source?.setWanted(wanted)
        },
        count: {
          published: (kind) => metrics.published.inc({ kind }),
          delivered: (frames) => metrics.delivered.inc(frames),
          dropped(frames) {
            metrics.dropped.inc(frames)
            history.framesDropped(frames)
          },
          joined: (how) => metrics.joined.inc({ how }),
          refused: (code) => metrics.subscribeRefused.inc({ code }),
          deflated(bytesBefore, bytesAfter) {
            metrics.deflatedFrom.inc(bytesBefore)
            metrics.deflatedTo.inc(bytesAfter)
          },
        },
      },
    ),
  )

  const intake = new MessageIntake({ hub, views, blocks, history, liveness, metrics, log })
  now.source = opening.use(await deps.startSource((messages) => intake.takeMessages(messages)))
  if (now.wanted !== undefined) now.source.setWanted(now.wanted)

  const policy = { access: options.auth === 'token' ? access : undefined, clock, docsUrl: deps.docsUrl }
  const clientAddress = createClientAddress(options.trustedProxies)
  const budget = createWorkBudget(options.work, clock)
  const { connectionsMax, connectionsPerAddress, client } = options
  const ws = opening.use(
    createWsEndpoint(
      {
        connectionsMax,
        connectionsPerAddress,
        pingMs: client.pingMs,
        pingsMissedMax: client.pingsMissedMax,
        isDeflateOffered: options.wsCompression,
        ...options.ws,
      },
      { ...policy, hub, rules, clientAddress, metrics, budget, random: deps.random, refusals: deps.refusals },
    ),
  )
  const rpc = createRpc(options.rpc, {
    clock,
    log,
    metrics,
    blocks,
    budget,
    chainId: () => views.chainId ?? archive?.chainId ?? null,
    clientVersion: `Sluice/v${deps.version}`,
  })
  const http = opening.use(
    await startHttpEndpoint(
      { listen: options.listen },
      {
        ...policy,
        log,
        random: deps.random,
        refusals: deps.refusals,
        onRefused: deps.onRefused,
        onNotAfter: deps.onNotAfter,
        page: deps.page,
        documents: deps.documents,
        onUpgrade: ws.upgrade,
        isSimulated: isSimulated(),
        history: createHistoryDocument({ clock, history, isSimulated }),
        lookups: { history, blocks, names: deps.names ?? new Map(), held: () => blocks.ranges },
        runWork: rpc.run,
        routes: {
          views,
          history,
          liveness,
          window: () => hub.window,
          connections: () => ws.connections,
          ringSeqno: () => intake.position.seqno,
          held: () => blocks.ranges,
        },
        rpcPost: rpc.post,
        budget,
        clientAddress,
        crossOrigin: createCrossOrigin(options.corsOrigins),
        onLimit: (limit) => metrics.limits.inc({ limit }),
        metricsText: async (format) => ({
          text: await deps.registry.text(format, isExecutionMetric),
          type: deps.registry.contentType(format),
        }),
      },
    ),
  )
  metrics.attach({
    connections: () => ws.connections,
    waitingFrames: () => ws.waitingFrames,
    window: () => ({ ...hub.window, entriesMax: options.resume.entriesMax }),
    ring: () => intake.position,
    ageSeconds: () => liveness.ageMs / 1000,
    isHealthy: () => liveness.isHealthy,
    isSimulated,
    blockNumber: () => views.blockNumber,
    tps: () => views.tps,
    blocksHeld: () => memory.size,
    heldRange: () => blocks.range,
    archive: () => ({ blocks: archive?.size ?? 0, bytes: archive?.bytes ?? 0, skipped: archive?.skipped ?? 0 }),
    history: () => ({ blocks: history.proposals.size, bytes: history.bytes, failures: history.failures }),
    rpc: rpc.readings,
  })
  const opened = opening.move()
  onHealth(liveness.isHealthy)

  async function drain(deadlineMs: number): Promise<void> {
    const endMs = clock.monotonicMs() + deadlineMs
    await ws.drain(deadlineMs)
    await http.drain(Math.max(0, endMs - clock.monotonicMs()))
    await opened.disposeAsync()
  }

  return {
    address: http.address,
    ended,
    status: () => ({
      status: liveness.status,
      blockNumber: views.blockNumber,
      connections: ws.connections,
      failure: intake.failure?.message,
    }),
    beginLameDuck: () => http.beginLameDuck(),
    drain,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }

  /** Recovered is reported with an event, not with a start. */
  function onHealth(isHealthy: boolean): void {
    if (isHealthy) deps.lifecycle.recovered('execution')
    else deps.lifecycle.degraded('execution', 'no event for 30 s or longer')
  }

  function onSilent(): void {
    log.error(
      { silentMs: Math.round(liveness.ageMs), failure: intake.failure?.message },
      'no event for 30 s: the execution service ends',
    )
    metrics.serviceRestarts.inc()
    http.beginLameDuck()
    clock.setTimer(LAME_DUCK_MS, () => {
      drain(END_MS)
        .catch((err: unknown) => log.error({ err }, 'the execution service did not close cleanly'))
        .finally(end)
    })
  }

  function isSimulated(): boolean {
    return now.source?.isSimulated ?? false
  }

  function hello(): HelloFacts {
    return {
      protocol_version: 1,
      server_version: deps.version,
      chain_id: views.chainId,
      block_number: views.blockNumber,
      available_filters: AVAILABLE_FILTERS,
      limits: {
        backfill_events: options.resume.entriesMax,
        buffer_per_client: client.framesMax,
        slow_off_limit: client.dropsMax,
        heartbeat_interval: Math.round(client.pingMs / 1000),
        heartbeat_timeout: Math.round((client.pingMs * client.pingsMissedMax) / 1000),
        max_subscribes: options.subscribeItemsMax,
      },
      source: {
        kind: now.source?.kind ?? 'ring',
        timings: now.source?.timings ?? true,
        simulated: isSimulated(),
      },
    }
  }

  /** Flushes after all messages of this turn of the event loop were taken. */
  function deferFlush(run: () => void): void {
    setImmediate(() => {
      const startedMs = processTimeMs()
      run()
      metrics.flush.observe((processTimeMs() - startedMs) / 1000)
    })
  }
}
