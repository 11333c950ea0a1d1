import { type Backoff, createBackoff } from '../../core/backoff.ts'
import type { Clock, Timer } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { startWorker, type WorkerThread } from '../../platform/process/worker.ts'
import type { RingMode } from '../../platform/ring-file/reader.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { Source, SourceMessage } from './message.ts'
import type { RingThreadOptions, ToRingThread } from './ring-thread.ts'
import type { Wanted } from './wanted-events.ts'

export type RingSourceOptions = {
  /** Who writes the ring: a node itself, or a follower of a node that tells no durations. */
  readonly kind: 'ring' | 'evm-node'
  readonly path: string
  readonly start: 'newest-block' | 'oldest'
  /** Undefined is `auto`. */
  readonly mode?: RingMode
  readonly topAccessesMs: number
  readonly topAccessesResetMs: number
  readonly blockBytesMax: number
}

export type RingSourceDeps = {
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly onMessages: (messages: SourceMessage[]) => void
  /** The file that runs as the thread; tests give one that can die. */
  readonly threadEntry?: URL
}

const CHECK_MS = 500
/** The thread hears within a turn that it should end. One that is cut while it loads what mapping takes would take the process with it. */
const END_MS = 10_000
const RESTART = { firstMs: 100, maxMs: 5000 }

/**
 * The ring, read in a thread of its own. A thread that dies is started again and goes on behind the last event it told of, so that
 * nothing is told twice; what it knew of open blocks is lost, and that is told. One that dies before it gets any further may have met
 * something it cannot stand, so the next begins with the newest block.
 */
export function startRingSource(options: RingSourceOptions, deps: RingSourceDeps): Source {
  const { log, clock, random, onMessages } = deps
  const backoff: Backoff = createBackoff(RESTART, random)
  let thread: WorkerThread<ToRingThread> | undefined
  let wanted: Wanted = { names: [], version: 0 }
  let restart: Timer | undefined
  let lastSeqno = 0
  let startSeqno = 0

  function start(): void {
    const { kind: _kind, mode = 'auto', ...reading } = options
    const settings: RingThreadOptions = {
      ...reading,
      mode,
      ...(lastSeqno > startSeqno ? { start: { seqno: lastSeqno + 1 } } : {}),
      checkMs: CHECK_MS,
      seed: Math.floor(random.float() * 2 ** 32),
    }
    startSeqno = lastSeqno
    thread = startWorker<ToRingThread, SourceMessage[]>(deps.threadEntry ?? threadEntry(), settings, {
      onMessage: take,
      onDeath,
      endMs: END_MS,
    })
    thread.post({ kind: 'wanted', ...wanted })
  }

  function take(messages: SourceMessage[]): void {
    backoff.reset()
    for (const message of messages) if (message.kind === 'progress') lastSeqno = message.position.seqno
    thread?.post({ kind: 'taken', posts: 1 })
    onMessages(messages)
  }

  function onDeath(error: Error): void {
    thread = undefined
    const delayMs = backoff.nextMs()
    log.error({ err: error, delayMs }, 'the thread that reads the ring died; it is started again')
    onMessages([
      { kind: 'forgotten', ids: 'all' },
      { kind: 'restart', previousSeqno: lastSeqno },
    ])
    restart = clock.setTimer(delayMs, start)
  }

  start()
  return {
    kind: options.kind,
    timings: options.kind === 'ring',
    setWanted(now) {
      wanted = now
      thread?.post({ kind: 'wanted', ...now })
    },
    async [Symbol.asyncDispose]() {
      restart?.cancel()
      await thread?.[Symbol.asyncDispose]()
    },
  }
}

function threadEntry(): URL {
  return import.meta.url.endsWith('.ts')
    ? new URL('./ring-thread.ts', import.meta.url)
    : new URL('./ring-thread.js', import.meta.url)
}
