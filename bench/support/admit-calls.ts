import { createCallAdmission } from '../../src/access/admission.ts'
import { callMetrics } from '../../src/access/metrics.ts'
import { BUILT_IN_PLANS, createPlanTable } from '../../src/access/plan.ts'
import { Calendar } from '../../src/access/quota/calendar.ts'
import { createLedger } from '../../src/access/quota/ledger.ts'
import { QuotaMemory } from '../../src/access/quota/memory.ts'
import { HEADER, usageArrays } from '../../src/access/usage/event-memory.ts'
import { UsageEventWriter } from '../../src/access/usage/event-writer.ts'
import { createMetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { createAccessFixture } from '../../test/support/access/fixture.ts'
import { threadClock } from '../../test/support/process/thread-clock.ts'

export type AdmitTask = {
  readonly accounts: SharedArrayBuffer
  readonly calendar: SharedArrayBuffer
  readonly events: SharedArrayBuffer
  readonly thread: number
  /** Which of the subscriptions this thread uses. */
  readonly subscription: number
}

/** Calls of a round. */
export const ADMIT_ROUND = 1000

/** Admits calls without a pause, as a thread of a gateway does between the other work of a call. */
export function createAdmitCalls({ accounts, calendar: shared, events, thread, subscription }: AdmitTask) {
  const fixture = createAccessFixture()
  const secrets = [0, 1].map(() => fixture.subscribe({ plan: 'bench' }).secret)
  fixture.publish()
  const calendar = new Calendar(shared)
  calendar.update(threadClock.monotonicMs())
  const limits = { ...BUILT_IN_PLANS.professional, unitsPerSecond: 1e9 }
  const plans = createPlanTable({ bench: limits })
  // The clock is read once per round: the time of one scale for all threads is slow in this version of the clock.
  let nowMs = threadClock.monotonicMs()
  const admission = createCallAdmission({
    snapshot: fixture.snapshot,
    plans: () => plans,
    ledger: createLedger({ memory: new QuotaMemory(accounts, thread), calendar }),
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
    for (let count = 0; count < ADMIT_ROUND; count++) if (!admission.admit(caller, call).ok) throw new Error('refused')
  }
  return {
    round,
    /** Admits for a time, and returns the calls and the CPU time of this thread. */
    admitFor(ms: number): { readonly calls: number; readonly cpuUs: number } {
      const before = process.threadCpuUsage()
      let calls = 0
      for (const endMs = performance.now() + ms; performance.now() < endMs; calls += ADMIT_ROUND) round()
      const { user, system } = process.threadCpuUsage(before)
      return { calls, cpuUs: user + system }
    },
  }
}
