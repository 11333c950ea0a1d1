import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Call } from '../../../src/access/admission.ts'
import type { AccessService } from '../../../src/access/service.ts'
import type { AccessThreadData, ThreadReply, ThreadRequest } from './thread.ts'

/** Real threads with access of their own, beside the main thread that has started `access` for `threads + 1`. */
export async function startAccessThreads(
  access: AccessService,
  { threads, subscriptions, seed = 1, clock }: ThreadsOptions,
) {
  const forwarded = new SharedArrayBuffer(8 * (threads + 1) * subscriptions)
  const workers = new Map<number, Worker>()
  const wakes: number[] = []
  const degraded: string[] = []

  async function start(thread: number): Promise<void> {
    const data: AccessThreadData = { start: access.startDataOf(thread), forwarded, clock, seed: seed + thread }
    const worker = new Worker(new URL('./thread.ts', import.meta.url), { workerData: data })
    workers.set(thread, worker)
    worker.on('message', (message: ThreadReply) => {
      if (message.is === 'degraded') degraded.push(`${thread} ${message.part}: ${message.reason}`)
      if (message.is !== 'wake') return
      wakes.push(performance.now())
      access.sendRequestedBookings()
    })
    await replyOf(worker, 'ready')
  }

  const watching = access.onChange(() => {
    const update = access.update()
    for (const worker of workers.values()) worker.postMessage({ do: 'update', update } satisfies ThreadRequest)
  })
  for (let thread = 1; thread <= threads; thread++) await start(thread)
  return {
    start,
    wakes,
    degraded,
    post(thread: number, request: ThreadRequest): void {
      workers.get(thread)?.postMessage(request)
    },
    postAll(request: ThreadRequest): void {
      for (const worker of workers.values()) worker.postMessage(request)
    },
    async admit(thread: number, secret: string, call: Call, times = 1) {
      const worker = workers.get(thread) as Worker
      worker.postMessage({ do: 'admit', secret, call, times } satisfies ThreadRequest)
      return replyOf(worker, 'admitted')
    },
    async stop(thread: number) {
      const worker = workers.get(thread) as Worker
      worker.postMessage({ do: 'stop' } satisfies ThreadRequest)
      return replyOf(worker, 'stopped')
    },
    /** Ends the thread wherever it is. */
    async kill(thread: number): Promise<void> {
      await workers.get(thread)?.terminate()
      workers.delete(thread)
      await access.threadEnded(thread)
    },
    /** Units of a subscription that all threads have forwarded. */
    forwarded(subscription: number): number {
      const rows = new Float64Array(forwarded)
      let units = 0
      for (let thread = 1; thread <= threads; thread++) units += rows[thread * subscriptions + subscription] as number
      return units
    },
    async [Symbol.asyncDispose]() {
      watching[Symbol.dispose]()
      for (const thread of [...workers.keys()]) await this.kill(thread)
    },
  }
}

type ThreadsOptions = {
  readonly threads: number
  readonly subscriptions: number
  readonly seed?: number
  readonly clock?: SharedArrayBuffer
}

async function replyOf<Is extends ThreadReply['is']>(worker: Worker, is: Is) {
  for (;;) {
    const [message] = (await once(worker, 'message')) as [ThreadReply]
    if (message.is === is) return message as Extract<ThreadReply, { is: Is }>
  }
}
