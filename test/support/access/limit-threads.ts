import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { LimitMemory } from '../../../src/gateway/limits.ts'
import type { LimitTask, LimitThreadData } from './limit-thread.ts'

/** Real threads 1 to `threads` that count against the limits of one memory. */
export function startLimitThreads(memory: LimitMemory, threads: number, keys: readonly string[]) {
  const width = keys.length + 1
  const witness = new SharedArrayBuffer(4 * (threads + 2) * width)
  const progress = new SharedArrayBuffer(8 * (threads + 1))
  const seen = new Int32Array(witness)
  const counts = new Int32Array(progress)
  const start = (thread: number) => {
    const data: LimitThreadData = { memory, thread, keys, witness, progress }
    return new Worker(new URL('./limit-thread.ts', import.meta.url), { workerData: data })
  }
  const workers = new Map(Array.from({ length: threads }, (_, at) => [at + 1, start(at + 1)]))
  return {
    async run<Reply>(thread: number, task: LimitTask): Promise<Reply> {
      const worker = workers.get(thread) as Worker
      const reply = once(worker, 'message')
      worker.postMessage(task)
      const [value] = (await reply) as [Reply]
      return value
    },
    taken: (thread: number) => Atomics.load(counts, 2 * thread),
    /** How often a thread saw more held than the limit allows. */
    violations: () => Array.from(workers.keys(), (thread) => Atomics.load(counts, 2 * thread + 1)),
    /** Ends the thread wherever it is, and removes what it held from the sums of the witness. */
    async kill(thread: number): Promise<void> {
      await workers.get(thread)?.terminate()
      for (let index = 0; index < width; index++)
        Atomics.sub(seen, index, Atomics.exchange(seen, (1 + thread) * width + index, 0))
    },
    restart: (thread: number) => void workers.set(thread, start(thread)),
    async [Symbol.asyncDispose]() {
      await Promise.all(Array.from(workers.values(), (worker) => worker.terminate()))
    },
  }
}
