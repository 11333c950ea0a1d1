import { Views } from './api/views.ts'
import type { ExecutionDeps, ExecutionSettings } from './deps.ts'
import { type Endpoints, type ServedParts, startEndpoints } from './endpoints.ts'
import type { ExecutionReadings } from './metrics.ts'
import { BlockStore, HELD_BLOCKS } from './rpc/block-store.ts'
import { Blocks } from './rpc/blocks.ts'
import { watchLiveness } from './source/liveness.ts'
import type { Source } from './source/message.ts'
import { MessageHandler } from './stream/message-handler.ts'
import { openHub } from './stream/open-hub.ts'

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
  const { clock, metrics, archive, history } = deps
  const log = deps.log.child({ part: 'execution' })
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  await using opening = new AsyncDisposableStack()

  const liveness = opening.use(watchLiveness({ clock, lastEvent: deps.lastEvent, onHealth, onSilent }))
  const views = new Views()
  const { heldMax: blocksMax = HELD_BLOCKS, bytesMax } = options.blocks
  const memory = new BlockStore({ blocksMax, bytesMax }, { stageOf: (id) => views.lifecycle.stageOf(id) })
  const blocks = new Blocks(memory, archive)
  // The hub uses the source for its clients, and there are none before the endpoints are open.
  const hub = opening.use(openHub(options, { ...deps, log, views, source: () => source }))
  const messageHandler = new MessageHandler({ hub, views, blocks, history, liveness, metrics, log })
  const source: Source = opening.use(await deps.startSource((messages) => messageHandler.handle(messages)))
  const served = { hub, views, blocks, liveness, messageHandler, source }
  const endpoints = opening.use(await startEndpoints(options, { ...deps, log }, served))
  metrics.attach(readingsOf({ ...served, endpoints, memory, archive, history }))
  const opened = opening.move()

  const execution: Execution = {
    address: endpoints.address,
    ended,
    status: () => ({
      status: liveness.status,
      blockNumber: views.blockNumber,
      connections: endpoints.connections,
      failure: messageHandler.failure?.message,
    }),
    beginLameDuck: () => endpoints.beginLameDuck(),
    async drain(deadlineMs) {
      await endpoints.drain(deadlineMs)
      await opened.disposeAsync()
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
  onHealth(liveness.isHealthy)
  return execution

  /** A restart alone does not report `recovered`: the age of the last event continues over it. */
  function onHealth(isHealthy: boolean): void {
    if (isHealthy) deps.lifecycle.recovered('execution')
    else deps.lifecycle.degraded('execution', 'no event for 30 s or longer')
  }

  function onSilent(): void {
    log.error(
      { silentMs: Math.round(liveness.ageMs), failure: messageHandler.failure?.message },
      'no event for 30 s: the execution service ends',
    )
    metrics.serviceRestarts.inc()
    execution.beginLameDuck()
    clock.setTimer(LAME_DUCK_MS, () => {
      execution
        .drain(END_MS)
        .catch((err: unknown) => log.error({ err }, 'the execution service did not close cleanly'))
        .finally(end)
    })
  }
}

type ReadParts = ServedParts &
  Pick<ExecutionDeps, 'archive' | 'history'> & { readonly endpoints: Endpoints; readonly memory: BlockStore }

function readingsOf(parts: ReadParts): ExecutionReadings {
  const { hub, views, blocks, liveness, messageHandler, source, endpoints, memory, archive, history } = parts
  return {
    connections: () => endpoints.connections,
    waitingFrames: () => endpoints.waitingFrames,
    window: () => ({ ...hub.window, entriesMax: hub.options.buffer.entriesMax }),
    ring: () => messageHandler.position,
    ageSeconds: () => liveness.ageMs / 1000,
    isHealthy: () => liveness.isHealthy,
    isSimulated: () => source.isSimulated,
    blockNumber: () => views.blockNumber,
    tps: () => views.tps,
    blocksHeld: () => memory.size,
    heldRange: () => blocks.range,
    archive: () => ({ blocks: archive?.size ?? 0, bytes: archive?.bytes ?? 0, skipped: archive?.skipped ?? 0 }),
    history: () => ({ blocks: history.proposals.size, bytes: history.bytes, failures: history.failures }),
    rpc: endpoints.rpcReadings,
  }
}
