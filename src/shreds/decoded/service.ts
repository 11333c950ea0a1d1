import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { startStoppableWorker } from '../../platform/process/stoppable-worker.ts'
import { type InstanceEvents, supervise } from '../../platform/process/supervise.ts'
import type { WorkerThread } from '../../platform/process/worker.ts'
import type { SlotReport } from './events.ts'
import { createInputMemory } from './input-ring.ts'
import type { TableAccount, TableChanges } from './lookup-tables.ts'
import type { NodeStreamsMemory } from './node-streams/follow-nodes.ts'
import type { DecodedOptions } from './options.ts'
import { createOutputMemory } from './output-ring.ts'
import type { DecodedThreadOptions, DecodedThreadReport, FromDecoded, ToDecoded } from './protocol.ts'

/**
 * ShredStream Decoded: transactions from shreds, before they are executed.
 *
 *     relay thread ──> input ring ──> engine thread ──> output ring ──> a reader in each gateway thread
 *     verified shreds  input-ring.ts  run.ts, engine.ts  output-ring.ts  openOutputReader, decodeMessage (messages.ts)
 *                                       ^   |
 *                         lookup tables |   v tables wanted, slot reports, counts
 *                                     this service
 *
 *     nodes' own streams ──> records ring ──^   (node-streams/, in a thread beside)
 *
 * No thread waits for another: the relay drops a shred when the input ring is full, and a reader that falls behind the output ring learns how many
 * records it has lost. Both memories outlive the thread, which is restarted when it fails.
 */
export type Decoded = AsyncDisposable & {
  /** For the relay: `openInputWriter`. */
  readonly input: SharedArrayBuffer
  /** For any number of readers in any thread: `openOutputReader`, then `decodeMessage` for each record. */
  readonly output: SharedArrayBuffer
  /** For the thread that follows the streams of nodes; undefined where none is merged. */
  readonly nodeStreams: NodeStreamsMemory | undefined
  /** The latest report of the thread; undefined before the first. */
  status(): DecodedThreadReport | undefined
}

export type DecodedDeps = BaseDeps & {
  /** Where lookup tables come from. Without it transactions that use them are delivered without loaded addresses. */
  readonly lookupTables?: LookupTableSource | undefined
  /** The length of a slot of the chain. */
  readonly slotLength?: { ms(): number; onChange(listener: () => void): Disposable } | undefined
  /** Five times a second. */
  onReport?(report: DecodedThreadReport): void
  /** A slot is closed: what was delivered of it, and what was lost. */
  onSlot?(report: SlotReport): void
  onState(isUp: boolean): void
}

/** The upstream's side of the lookup tables. */
export type LookupTableSource = {
  /** Loads these accounts and follows their changes; follows others no longer. */
  change(changes: TableChanges): void
  /** Follows none. */
  clear(): void
  /** The content of accounts that are followed, when they are loaded and when they change. */
  onAccounts(listener: (accounts: readonly TableAccount[]) => void): Disposable
}

const RESTART = { firstMs: 200, maxMs: 30_000 }
/** The thread reports five times a second. */
const LIVENESS_MS = 30_000
const STOP_MS = 2000
const THREAD = new URL('./thread.ts', import.meta.url)

/** Starts the thread of the engine. `shredsPerSlotMax` is that of the relay. */
export async function startDecoded(
  options: DecodedOptions & { readonly shredsPerSlotMax: number; readonly isMerging?: boolean | undefined },
  deps: DecodedDeps,
): Promise<Decoded> {
  const { clock, random, log, lookupTables, slotLength } = deps
  await using opening = new AsyncDisposableStack()
  const input = createInputMemory(options.inputShreds)
  const output = createOutputMemory(options.outputBytes)
  const { slotsMax, bytesMax, queueBytes } = options.merge
  const records = options.isMerging === true ? createOutputMemory(queueBytes) : undefined
  const threadOptions: DecodedThreadOptions = {
    engine: {
      slotsMax: options.slotsMax,
      slotsBehindMax: options.slotsBehindMax,
      silentSlotsMax: options.silentSlotsMax,
      bytesMax: options.bytesMax,
      shredsPerSlotMax: options.shredsPerSlotMax,
    },
    lookupTablesMax: options.lookupTablesMax,
    input,
    output,
    upstream: records && { slotsMax, bytesMax, records },
  }
  let latest: DecodedThreadReport | undefined

  function start(events: InstanceEvents): WorkerThread<ToDecoded> {
    const thread = startStoppableWorker<ToDecoded, FromDecoded>(THREAD, threadOptions, {
      clock,
      onMessage(message) {
        switch (message.kind) {
          case 'ready':
            events.ready()
            if (slotLength !== undefined) thread.post({ kind: 'slot-length', ms: slotLength.ms() })
            if (supervised.restarts > 0) deps.onState(true)
            return
          case 'failed':
            return thread.fail(new Error(message.message))
          case 'tables':
            return lookupTables?.change(message)
          case 'report':
            events.alive()
            latest = message
            deps.onReport?.(message)
            for (const slot of message.slots) deps.onSlot?.(slot)
            return
        }
      },
      onDeath: events.failed,
      stopMs: STOP_MS,
    })
    return thread
  }

  const supervised = opening.use(
    supervise(
      { name: 'the decoding thread', backoff: RESTART, livenessMs: LIVENESS_MS, firstStartsMax: 1 },
      {
        clock,
        random,
        start,
        onRestart({ error, delayMs }) {
          deps.onState(false)
          // The next thread begins without tables and requests those it needs.
          lookupTables?.clear()
          log.error({ err: error, delayMs }, 'the decoding thread died and is restarted')
        },
      },
    ),
  )
  await supervised.started
  if (lookupTables !== undefined) {
    opening.use(lookupTables.onAccounts((accounts) => supervised.instance?.post({ kind: 'tables', accounts })))
  }
  if (slotLength !== undefined) {
    const post = (): void => supervised.instance?.post({ kind: 'slot-length', ms: slotLength.ms() })
    opening.use(slotLength.onChange(post))
  }
  const opened = opening.move()
  return {
    input,
    output,
    nodeStreams: records && { records, input },
    status: () => latest,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
