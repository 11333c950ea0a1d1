import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { createAdmission } from '../src/access/authorize.ts'
import { callMetrics } from '../src/access/metrics.ts'
import { BUILT_IN_PLANS, createPlanTable } from '../src/access/plan.ts'
import { createAccountMemory } from '../src/access/quota/account-layout.ts'
import { AccountMemory } from '../src/access/quota/account-memory.ts'
import { Calendar } from '../src/access/quota/calendar.ts'
import { createLedger } from '../src/access/quota/ledger.ts'
import { createUsageMemory, HEADER, usageArrays } from '../src/access/usage/event-memory.ts'
import { UsageEventWriter } from '../src/access/usage/event-writer.ts'
import { createMetricsRegistry } from '../src/platform/telemetry/metrics-registry.ts'
import { createAccessFixture } from '../test/support/access.ts'
import { threadClock } from '../test/support/thread-clock.ts'

/**
 * What threads cost each other when they admit calls: the CPU time of an admitted call with one thread, with two threads on different subscriptions,
 * and with two threads on one subscription, which has one bucket and one lock. Also the atomic operations of a call, counted. Both threads admit
 * without a pause, which no gateway does: a forwarded call takes about a hundred times as long. Prints one JSON line.
 */
type Task = {
  readonly accounts: SharedArrayBuffer
  readonly calendar: SharedArrayBuffer
  readonly events: SharedArrayBuffer
  readonly thread: number
  /** Which of the subscriptions this thread uses. */
  readonly subscription: number
  readonly seconds: number
}
type Figures = { calls: number; cpuUs: number; atomics: Record<string, number> }

const SECONDS = 3
const ROUND = 1000
const COUNTED_CALLS = 10_000
const OPERATIONS = ['compareExchange', 'store', 'load', 'add', 'or', 'exchange', 'wait'] as const

if (isMainThread) {
  const calendar = new Calendar(threadClock)
  const run = async (subscriptions: readonly number[]) => {
    const accounts = createAccountMemory({ accountsMax: 16, threads: 3 })
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

function admitCalls({ accounts, calendar: sharedCalendar, events, thread, subscription, seconds }: Task): Figures {
  const fixture = createAccessFixture()
  const secrets = [0, 1].map(() => fixture.subscribe({ plan: 'bench' }).secret)
  fixture.publish()
  const calendar = new Calendar(sharedCalendar)
  calendar.update(threadClock.monotonicMs())
  const limits = { ...BUILT_IN_PLANS.professional, unitsPerSecond: 1e9 }
  const plans = createPlanTable({ bench: limits })
  // The clock is read once per round: the time of one scale for all threads is slow in this version of the clock.
  let nowMs = threadClock.monotonicMs()
  const admission = createAdmission({
    snapshot: fixture.snapshot,
    plans: () => plans,
    ledger: createLedger({ memory: new AccountMemory(accounts, thread), calendar }),
    usage: new UsageEventWriter(events, { calendar, clock: threadClock }),
    clock: { ...threadClock, monotonicMs: () => nowMs },
    metrics: callMetrics(createMetricsRegistry()),
  })
  const caller = admission.authenticate({ token: secrets[subscription] as string }, 'bundle', threadClock.nowMs())
  if (!caller.ok) throw new Error(caller.reason)
  const call = { interface: 'rpc', method: 'getSlot' } as const
  const { header } = usageArrays(events)
  const round = () => {
    nowMs = threadClock.monotonicMs()
    // In place of the main thread, which reads the events of a thread that does nothing else only ten times a second.
    header[HEADER.read] = header[HEADER.written] as number
    for (let count = 0; count < ROUND; count++) if (!admission.admit(caller, call).ok) throw new Error('refused')
  }
  const until = (ms: number) => {
    let calls = 0
    for (const endMs = performance.now() + ms; performance.now() < endMs; calls += ROUND) round()
    return calls
  }
  until(500)
  const before = process.threadCpuUsage()
  const calls = until(seconds * 1000)
  const after = process.threadCpuUsage(before)
  const atomics = thread === 1 ? countAtomics(round) : {}
  return { calls, cpuUs: after.user + after.system, atomics }
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
  for (let left = COUNTED_CALLS; left > 0; left -= ROUND) round()
  return Object.fromEntries(
    Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([name, count]) => [name, count / COUNTED_CALLS]),
  )
}
