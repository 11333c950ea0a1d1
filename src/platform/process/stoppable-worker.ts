import type { Clock } from '../../core/clock.ts'
import { startWorker, type WorkerThread } from './worker.ts'

export type StoppableWorker<In> = WorkerThread<In> & {
  /** For a message by which the thread reports that it cannot go on: it is then ended without waiting for its confirmation. */
  fail(error: Error): void
}

export type StoppableWorkerDeps<Out> = {
  readonly clock: Clock
  readonly onMessage: (message: Exclude<Out, Stopped>) => void
  /** The thread ended without being asked to, or `fail` was called. */
  readonly onDeath: (error: Error) => void
  /** How long the thread may take to confirm a stop. */
  readonly stopMs: number
}

type Stop = { readonly kind: 'stop' }
type Stopped = { readonly kind: 'stopped' }

/** Starts a thread that finishes what it has begun before it ends: disposing posts `stop` and waits for its `stopped`. */
export function startStoppableWorker<In, Out extends { readonly kind: string }>(
  entry: URL,
  data: unknown,
  { clock, onMessage, onDeath, stopMs }: StoppableWorkerDeps<Out>,
): StoppableWorker<In> {
  const stopped = Promise.withResolvers<void>()
  let hasFailed = false
  const fail = (error: Error): void => {
    hasFailed = true
    onDeath(error)
  }
  const thread = startWorker<In | Stop, Out>(entry, data, {
    onMessage(message) {
      if (message.kind === 'stopped') stopped.resolve()
      else onMessage(message as Exclude<Out, Stopped>)
    },
    onDeath: fail,
    endMs: 0,
  })
  return {
    post: thread.post,
    fail,
    async [Symbol.asyncDispose]() {
      if (!hasFailed) {
        thread.post({ kind: 'stop' })
        // A thread that does not confirm in time is terminated.
        const limit = clock.setTimer(stopMs, stopped.resolve)
        await stopped.promise
        limit.cancel()
      }
      await thread[Symbol.asyncDispose]()
    },
  }
}
