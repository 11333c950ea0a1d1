import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { Calendar } from '../src/access/quota/calendar.ts'
import { createQuotaMemory } from '../src/access/quota/memory-layout.ts'
import { createUsageMemory } from '../src/access/usage/event-memory.ts'
import { threadClock } from '../test/support/process/thread-clock.ts'
import { ADMIT_ROUND, type AdmitTask, createAdmitCalls } from './support/admit-calls.ts'

/**
 * What threads cost each other when they admit calls: the CPU time of an admitted call with one thread, with two threads on different subscriptions,
 * and with two threads on one subscription, which has one bucket and one lock. Also the atomic operations of a call, counted. Both threads admit
 * without a pause, which no gateway does: a forwarded call takes about a hundred times as long. Prints one JSON line.
 */
type Task = AdmitTask & { readonly seconds: number }
type Figures = { calls: number; cpuUs: number; atomics: Record<string, number> }

const SECONDS = 3
const COUNTED_CALLS = 10_000
const OPERATIONS = ['compareExchange', 'store', 'load', 'add', 'or', 'exchange', 'wait'] as const

if (isMainThread) {
  const calendar = new Calendar(threadClock)
  const run = async (subscriptions: readonly number[]) => {
    const accounts = createQuotaMemory({ accountsMax: 16, threads: 3 })
    const memory = subscriptions.map(createUsageMemory)
    const workers = subscriptions.map((subscription, at) => {
      const events = memory[at] as SharedArrayBuffer
      const task: Task = { accounts, calendar: calendar.shared, events, thread: at + 1, subscription, seconds: SECONDS }
      return new Worker(new URL(import.meta.url), { workerData: task })
    })
    const figures = await Promise.all(workers.map(async (worker) => ((await once(worker, 'message')) as [Figures])[0]))
    return {
      nsPerCall: figures.map(({ cpuUs, calls }) => Math.round((cpuUs / calls) * 1000)),
      callsPerSecond: Math.round(figures.reduce((sum, { calls }) => sum + calls, 0) / SECONDS),
      atomicsPerCall: figures[0]?.atomics,
    }
  }
  const { atomicsPerCall, ...one } = await run([0])
  const { atomicsPerCall: _a, ...different } = await run([0, 1])
  const { atomicsPerCall: _b, ...same } = await run([0, 0])
  const result = { bench: 'admit-threads', one, different, same, atomicsPerCall, node: process.version }
  process.stdout.write(`${JSON.stringify({ ...result, arch: process.arch })}\n`)
} else parentPort?.postMessage(admitCalls(workerData as Task))

function admitCalls({ seconds, ...task }: Task): Figures {
  const { round, admitFor } = createAdmitCalls(task)
  admitFor(500)
  const figures = admitFor(seconds * 1000)
  return { ...figures, atomics: task.thread === 1 ? countAtomics(round) : {} }
}

/** Replaces the operations by ones that count, at the end, because it makes them slow. */
function countAtomics(round: () => void): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of OPERATIONS) {
    const operation = Atomics[name] as (...args: unknown[]) => unknown
    counts[name] = 0
    Object.assign(Atomics, {
      [name](...args: unknown[]) {
        counts[name] = (counts[name] ?? 0) + 1
        return operation(...args)
      },
    })
  }
  for (let left = COUNTED_CALLS; left > 0; left -= ADMIT_ROUND) round()
  return Object.fromEntries(
    Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([name, count]) => [name, count / COUNTED_CALLS]),
  )
}
