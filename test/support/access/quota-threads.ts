import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { QuotaThreadData, Round, RoundReport } from './quota-thread.ts'

/** Real threads that charge the accounts of one memory; the test advances their clock. */
export async function startQuotaThreads(memory: SharedArrayBuffer, threads: number, startMs: number) {
  const admitted = new SharedArrayBuffer(8 * (threads + 1))
  const workers = Array.from({ length: threads }, (_, at) => {
    const data: QuotaThreadData = { memory, thread: at + 1, startMs, admitted }
    return new Worker(new URL('./quota-thread.ts', import.meta.url), { workerData: data })
  })
  return {
    async round(at: number, round: Round): Promise<RoundReport> {
      const worker = workers[at] as Worker
      worker.postMessage(round)
      const [report] = (await once(worker, 'message')) as [RoundReport]
      return report
    },
    post: (at: number, round: Round) => workers[at]?.postMessage(round),
    /** Units that a thread was allowed and did not get refunded. */
    admitted: (at: number) => Number(Atomics.load(new BigInt64Array(admitted), at + 1)),
    kill: (at: number) => workers[at]?.terminate(),
    async [Symbol.asyncDispose]() {
      await Promise.all(workers.map((worker) => worker.terminate()))
    },
  }
}
