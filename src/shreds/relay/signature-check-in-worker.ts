import type { ThreadPriority } from '../../platform/native/thread-schedule.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { type InstanceEvents, supervise } from '../../platform/process/supervise.ts'
import { startWorker, type WorkerThread } from '../../platform/process/worker.ts'
import { openWakeEvent } from '../../platform/udp/wake-event.ts'
import { createSignatureMemory, openSignatureReader } from './signature-ring.ts'

/** What the checking thread is started with. */
export type SignatureThreadOptions = {
  readonly memory: SharedArrayBuffer
  /** Wakes the relay after each verdict. */
  readonly wakeFd: number
  readonly priority: ThreadPriority
}

export type ToSignatureThread = { readonly kind: 'stop' }
export type FromSignatureThread = { readonly kind: 'ready' } | { readonly kind: 'alive' }

/** The thread that checks signatures for the relay. One that dies is restarted; the relay checks signatures itself meanwhile. */
export type SignatureCheckWorker = AsyncDisposable & Pick<SignatureThreadOptions, 'memory' | 'wakeFd'>

export type SignatureCheckDeps = BaseDeps & {
  /** The file of the thread; tests pass one that can die. */
  readonly entry?: URL | undefined
  readonly onRestart?: (() => void) | undefined
}

const RESTART = { firstMs: 200, maxMs: 30_000 }
const LIVENESS_MS = 30_000
const THREAD = new URL('./signature-thread.ts', import.meta.url)

/** Undefined where the relay cannot be woken: without the system calls of the engine `sendmmsg`. Does not wait until the thread runs. */
export async function startSignatureCheckInWorker(
  { priority }: Pick<SignatureThreadOptions, 'priority'>,
  { clock, random, log, entry = THREAD, onRestart: restarted }: SignatureCheckDeps,
): Promise<SignatureCheckWorker | undefined> {
  const wakeEvent = await openWakeEvent()
  if (wakeEvent === undefined) return undefined
  const memory = createSignatureMemory()
  const state = openSignatureReader(memory)

  function start(events: InstanceEvents): WorkerThread<ToSignatureThread> {
    const thread = startWorker<ToSignatureThread, FromSignatureThread>(
      entry,
      { memory, wakeFd: wakeEvent?.fd ?? -1, priority } satisfies SignatureThreadOptions,
      {
        onMessage: ({ kind }) => (kind === 'ready' ? events.ready() : events.alive()),
        onDeath: events.failed,
        youngMib: 2,
      },
    )
    return {
      post: thread.post,
      [Symbol.asyncDispose]() {
        thread.post({ kind: 'stop' })
        return thread[Symbol.asyncDispose]()
      },
    }
  }

  const supervised = supervise(
    { name: 'the signature thread', backoff: RESTART, livenessMs: LIVENESS_MS },
    {
      clock,
      random,
      start,
      onRestart({ error, delayMs }) {
        state.setAlive(false)
        restarted?.()
        log.error({ err: error, delayMs }, 'the thread that checks shreds died and is restarted')
      },
    },
  )
  return {
    memory,
    wakeFd: wakeEvent.fd,
    async [Symbol.asyncDispose]() {
      await supervised[Symbol.asyncDispose]()
      wakeEvent[Symbol.dispose]()
    },
  }
}
