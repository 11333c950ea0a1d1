import type { Access } from '../access/service.ts'
import { isExecutionMetric } from '../contract/execution-routes.ts'
import { AVAILABLE_FILTERS } from '../contract/stream-events.ts'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { createClientAddress } from '../platform/net/client-address.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import { processTimeMs } from '../platform/process/worker.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { createCrossOrigin } from './api/cross-origin.ts'
import { type Page, startHttpEndpoint } from './api/http.ts'
import { Views } from './api/views.ts'
import { createWorkBudget } from './api/work-budget.ts'
import type { ExecutionMetrics } from './metrics.ts'
import type { ExecutionOptions } from './options.ts'
import { BlockStore } from './rpc/block-store.ts'
import { createRpc } from './rpc/rpc.ts'
import { watchVitalSigns } from './source/liveness.ts'
import { NO_STATS, type Source, type SourceFailure, type SourcePosition, type StartSource } from './source/message.ts'
import type { Wanted } from './source/wanted-events.ts'
import { type HelloFacts, StreamHub } from './stream/hub.ts'
import { createSeqCounter, type SeqStore } from './stream/seq-counter.ts'
import { takeMessages } from './stream/take-messages.ts'
import { createWsEndpoint, type WsServerOptions } from './stream/ws.ts'

export type ExecutionSettings = Omit<
  ExecutionOptions,
  'enabled' | 'listen' | 'tls' | 'plaintext' | 'ring' | 'ringStart' | 'ringRead' | 'node'
> & {
  readonly listen: ListenerOptions
  readonly ws?: Pick<WsServerOptions, 'countsLoopback'>
}

export type ExecutionDeps = ListenerMetrics & {
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly version: string
  readonly registry: Pick<MetricsRegistry, 'text' | 'contentType'>
  readonly metrics: ExecutionMetrics
  readonly access: Access
  readonly seqStore: SeqStore
  readonly startSource: StartSource
  /** Files of the dashboard. */
  readonly page?: Page | undefined
}

export type Execution = AsyncDisposable & {
  readonly address: { readonly host: string; readonly port: number }
  /** Resolves when the service has ended by itself, because its source was silent for 30 s. */
  readonly ended: Promise<void>
  status(): { status: 'healthy' | 'degraded'; blockNumber: number; connections: number; failure: string | undefined }
  beginLameDuck(): void
  /** Closes WebSockets with 1012, finishes answers, gives up the port. */
  drain(deadlineMs: number): Promise<void>
}

/** How long /health answers 503 before the service ends, so that pollers see it. */
const LAME_DUCK_MS = 5000
/** From then on, whatever is open. */
const END_MS = 5000

/** A source of events, folded; views and stream made of it; the doors before them. */
export async function startExecution(options: ExecutionSettings, deps: ExecutionDeps): Promise<Execution> {
  const { clock, metrics, access } = deps
  const log = deps.log.child({ part: 'execution' })
  await using opening = new AsyncDisposableStack()
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  /** Clients may ask for raw events before the source has started. */
  const now: { source?: Source; wanted?: Wanted } = {}
  let position: SourcePosition = { seqno: 0, lagEvents: 0, readMs: 0, stats: NO_STATS }
  let failure: SourceFailure | undefined

  const liveness = opening.use(watchVitalSigns({ clock, onSilent }))
  const views = new Views()
  const { heldMax: blocksMax, bytesMax } = options.blocks
  const blocks = new BlockStore({ blocksMax, bytesMax }, { stageOf: (id) => views.lifecycle.stageOf(id) })
  const rules = { itemsMax: options.subscribeItemsMax, blocked: new Set(options.blockedEvents) }
  const onFault = (err: unknown) => log.error({ err }, 'the numbers of the stream cannot be kept on disk')
  const hub = opening.use(
    new StreamHub(
      { buffer: options.resume, client: options.client, rules, lingerMs: options.resume.eventsLingerMs },
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
          dropped: (frames) => metrics.dropped.inc(frames),
          joined: (how) => metrics.joined.inc({ how }),
          refused: (code) => metrics.subscribeRefused.inc({ code }),
        },
      },
    ),
  )

  now.source = opening.use(
    await deps.startSource((messages) =>
      takeMessages(messages, { hub, views, blocks, onProgress, onFinalized, onOpened, onRestart, onFailure }),
    ),
  )
  if (now.wanted !== undefined) now.source.setWanted(now.wanted)

  const policy = { access: options.auth === 'token' ? access : undefined, clock }
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
        ...options.ws,
      },
      { ...policy, hub, rules, clientAddress, metrics, budget },
    ),
  )
  const rpc = createRpc(options.rpc, {
    clock,
    log,
    metrics,
    blocks,
    budget,
    chainId: () => views.chainId,
    clientVersion: `Sluice/v${deps.version}`,
  })
  const http = opening.use(
    await startHttpEndpoint(
      { listen: options.listen },
      {
        ...policy,
        log,
        random: deps.random,
        onRefused: deps.onRefused,
        onNotAfter: deps.onNotAfter,
        page: deps.page,
        onUpgrade: ws.upgrade,
        routes: {
          views,
          liveness,
          window: () => hub.window,
          connections: () => ws.connections,
          ringSeqno: () => position.seqno,
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
    ring: () => position,
    ageSeconds: () => liveness.ageMs / 1000,
    isHealthy: () => liveness.isHealthy,
    blockNumber: () => views.blockNumber,
    tps: () => views.tps,
    blocksHeld: () => blocks.size,
    rpc: rpc.readings,
  })
  const opened = opening.move()

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
      failure: failure?.message,
    }),
    beginLameDuck: () => http.beginLameDuck(),
    drain,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }

  function onSilent(): void {
    log.error(
      { silentMs: Math.round(liveness.ageMs), failure: failure?.message },
      'no event for 30 s: the service ends',
    )
    metrics.serviceRestarts.inc()
    http.beginLameDuck()
    clock.setTimer(LAME_DUCK_MS, () => {
      drain(END_MS)
        .catch((err: unknown) => log.error({ err }, 'the service did not end in order'))
        .finally(end)
    })
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
      source: { kind: now.source?.kind ?? 'ring', timings: now.source?.timings ?? true },
    }
  }

  /** After everything that has arrived in this turn was taken in. */
  function deferFlush(run: () => void): void {
    setImmediate(() => {
      const startedMs = processTimeMs()
      run()
      metrics.flush.observe((processTimeMs() - startedMs) / 1000)
    })
  }

  function onProgress(reached: SourcePosition): void {
    position = reached
    liveness.beat()
    metrics.publish.observe(Math.max(0, processTimeMs() - reached.readMs) / 1000)
  }

  function onFinalized(ageMs: number): void {
    metrics.finalize.observe(ageMs / 1000)
  }

  function onOpened(way: string): void {
    log.info({ way }, 'the event ring is read')
  }

  function onRestart(): void {
    metrics.ringRestarts.inc()
    log.warn({ lastSeqno: position.seqno }, 'the event ring was replaced')
  }

  function onFailure(found: SourceFailure | undefined): void {
    failure = found
    if (found !== undefined) log.warn({ reason: found.code, detail: found.message }, 'the event ring cannot be read')
  }
}
