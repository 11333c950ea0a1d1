import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { supervise } from '../../platform/process/supervise.ts'
import { startWorker, type WorkerThread } from '../../platform/process/worker.ts'
import type { RingMode } from '../../platform/ring-file/reader.ts'
import type { Source, SourceMessage } from './message.ts'
import type { RawEventSelection } from './raw-event-demand.ts'
import type { RingThreadOptions, ToRingThread } from './ring-thread.ts'

export type RingSourceOptions = {
  /** The writer of the ring: a node, or Sluice itself from a node's RPC, which gives no timings. */
  readonly kind: 'ring' | 'evm-node'
  /** The simulated chain writes the ring. */
  readonly isSimulated?: boolean
  readonly path: string
  readonly start: 'newest-block' | 'oldest'
  /** Undefined is `auto`. */
  readonly mode?: RingMode
  readonly topAccessesMs: number
  readonly topAccessesResetMs: number
  readonly blockBytesMax: number
}

export type RingSourceDeps = BaseDeps & {
  readonly onMessages: (messages: SourceMessage[]) => void
  /** The file of the thread; tests pass one that can die. */
  readonly threadEntry?: URL
}

const CHECK_MS = 500
/** The thread sees the request to end within one loop iteration. Terminating it while it loads the native library for mapping would crash the process. */
const END_MS = 10_000
const RESTART = { firstMs: 100, maxMs: 5000 }
const THREAD = new URL('./ring-thread.ts', import.meta.url)

/**
 * Reads the ring in a worker thread. A restarted thread continues after the last event that was reported, so that none is reported twice; the open blocks
 * are lost, and this is reported as a restart. A thread that dies before it reports any progress may have failed on what it read, so the next one starts
 * at the newest block.
 */
export function startRingSource(options: RingSourceOptions, deps: RingSourceDeps): Source {
  const { log, clock, random, onMessages } = deps
  let selection: RawEventSelection = { names: [], version: 0 }
  let lastSeqno = 0
  let startSeqno = 0

  function threadOptions(): RingThreadOptions {
    const { kind, isSimulated: _isSimulated, mode = 'auto', ...reading } = options
    const hasProgressed = lastSeqno > startSeqno
    startSeqno = lastSeqno
    return {
      ...reading,
      mode,
      isOwnRing: kind === 'evm-node',
      ...(hasProgressed ? { start: { seqno: lastSeqno + 1 } } : {}),
      checkMs: CHECK_MS,
      seed: Math.floor(random.float() * 2 ** 32),
    }
  }

  const supervised = supervise<WorkerThread<ToRingThread>>(
    { backoff: RESTART },
    {
      clock,
      random,
      start(events) {
        const thread = startWorker<ToRingThread, SourceMessage[]>(deps.threadEntry ?? THREAD, threadOptions(), {
          onMessage(messages) {
            events.ready()
            for (const message of messages) if (message.kind === 'progress') lastSeqno = message.position.seqno
            thread.post({ kind: 'taken', posts: 1 })
            onMessages(messages)
          },
          onDeath: events.failed,
          endMs: END_MS,
        })
        thread.post({ kind: 'select-raw-events', ...selection })
        return thread
      },
      onRestart({ error, delayMs }) {
        log.error({ err: error, delayMs }, 'the ring reader thread died and is restarted')
        onMessages([
          { kind: 'forgotten', ids: 'all' },
          { kind: 'restart', previousSeqno: lastSeqno },
        ])
      },
    },
  )
  return {
    kind: options.kind,
    hasTimings: options.kind === 'ring',
    isSimulated: options.isSimulated ?? false,
    selectRawEvents(now) {
      selection = now
      supervised.instance?.post({ kind: 'select-raw-events', ...now })
    },
    [Symbol.asyncDispose]: () => supervised[Symbol.asyncDispose](),
  }
}
