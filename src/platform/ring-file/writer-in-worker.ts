import type { Clock } from '../../core/clock.ts'
import { ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import { type Restart, type Supervised, supervise } from '../process/supervise.ts'
import { startWorker, type WorkerDeps, type WorkerThread } from '../process/worker.ts'

/** Why a thread cannot write its ring; it posts this instead of getting ready. */
export type WriterFailed = { readonly kind: 'failed'; readonly message: string }

export type WriterWorkerOptions = Pick<WorkerDeps<never>, 'endMs' | 'youngMib'> & {
  readonly entry: URL
  readonly data: unknown
  /** A thread that ended sooner counts as one that cannot start. */
  readonly resetAfterMs: number
}

export type WriterWorkerDeps<In, Out extends { readonly kind: string }> = {
  readonly clock: Clock
  readonly random: Random
  /** `ready` reports that the ring is written. */
  readonly onMessage: (message: Exclude<Out, WriterFailed>, thread: WorkerThread<In>, ready: () => void) => void
  readonly onRestart: (restart: Restart) => void
}

const RESTART = { firstMs: 500, maxMs: 30_000 }

/**
 * Starts a thread that writes an event ring, and waits until it does. Throws `ring-unwritable` when it cannot. A thread that dies later is
 * restarted; each begins a new ring.
 */
export async function startWriterInWorker<In, Out extends { readonly kind: string }>(
  { entry, data, resetAfterMs, ...limits }: WriterWorkerOptions,
  { clock, random, onMessage, onRestart }: WriterWorkerDeps<In, Out>,
): Promise<Supervised<WorkerThread<In>>> {
  const supervised = supervise<WorkerThread<In>>(
    { backoff: RESTART, resetAfterMs, firstStartsMax: 1 },
    {
      clock,
      random,
      start(events) {
        const thread = startWorker<In, Exclude<Out, WriterFailed> | WriterFailed>(entry, data, {
          onMessage(message) {
            if (isFailed(message)) events.failed(new ServiceError('ring-unwritable', message.message))
            else onMessage(message, thread, events.ready)
          },
          onDeath: events.failed,
          ...limits,
        })
        return thread
      },
      onRestart,
    },
  )
  await supervised.started
  return supervised
}

function isFailed(message: { readonly kind: string }): message is WriterFailed {
  return message.kind === 'failed'
}
