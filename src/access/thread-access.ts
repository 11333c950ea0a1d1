import type { Clock } from '../core/clock.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { type Access, createCallAccess } from './call-access.ts'
import { callMetrics } from './metrics.ts'
import type { Plans } from './plan.ts'
import { Calendar } from './quota/calendar.ts'
import { createLedger } from './quota/ledger.ts'
import { QuotaMemory } from './quota/memory.ts'
import { createReportedPlans } from './reported-plans.ts'
import { type SharedSnapshot, Snapshot } from './snapshot/snapshot.ts'
import { UsageEventWriter } from './usage/event-writer.ts'

/** The shortest time between two requests of a thread to the main thread. Each covers everything that is marked by then. */
const WAKE_MS = 2

/** What changes while a thread runs, as it is posted to the threads. The records of the snapshot are shared memory, and not copied. */
export type AccessUpdate = {
  /** Grows with each update. */
  readonly version: number
  readonly snapshot: SharedSnapshot
  readonly plans: Plans
  /** Grows with each change of the plans: equal limits stay the same objects as long as it does not. */
  readonly plansVersion: number
}

/** What a thread needs to start, as it is posted to it. */
export type ThreadAccessStart = AccessUpdate & {
  readonly thread: number
  readonly quota: SharedArrayBuffer
  readonly calendar: SharedArrayBuffer
  readonly usage: SharedArrayBuffer
  readonly ticketKey: Uint8Array
  /** Whether the quota is shared with other processes. */
  readonly isQuotaShared: boolean
}

export type ThreadAccessDeps = Pick<BaseDeps, 'log' | 'clock'> & {
  readonly registry: MetricsRegistry
  readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>
  /** Has the main thread call `sendRequestedBookings`. */
  requestBookings(): void
}

export type ThreadAccess = Access &
  Disposable & {
    /** Uses the snapshot and the plans of a newer update from now on. */
    apply(update: AccessUpdate): void
  }

/**
 * Access in a thread of its own. It charges the same accounts and counts the same permits as the other threads, reads the same snapshot, and counts
 * usage as events for the main thread, which alone reads the store, writes usage, and exchanges quota with other processes. The clocks of all threads
 * must have the same scale.
 */
export function openThreadAccess(start: ThreadAccessStart, deps: ThreadAccessDeps): ThreadAccess {
  const { clock } = deps
  const log = deps.log.child({ part: 'access' })
  using opening = new DisposableStack()
  let { version, plansVersion } = start
  let snapshot = Snapshot.fromShared(start.snapshot)
  const plans = createReportedPlans(start.plans, deps.lifecycle)
  const calendar = new Calendar(start.calendar)
  calendar.update(clock.monotonicMs())
  const memory = new QuotaMemory(start.quota, start.thread)
  const requestBookings = start.isQuotaShared ? createRequest(clock, deps.requestBookings) : undefined
  const ledger = createLedger({
    memory,
    calendar,
    limitsVersion: () => version,
    requestBookings,
  })
  const usage = opening.use(new UsageEventWriter(start.usage, { calendar, clock }))
  const access = opening.use(
    createCallAccess({
      log,
      clock,
      memory,
      ledger,
      usage,
      metrics: callMetrics(deps.registry),
      ticketKey: start.ticketKey,
      requestPermits: () => requestBookings?.(),
      snapshot: () => snapshot,
      plans: plans.current,
      onMissingPlan: plans.missing,
    }),
  )
  const opened = opening.move()
  return {
    ...access,
    apply(update) {
      // An update that was made before this thread started may arrive after it did.
      if (update.version <= version) return
      version = update.version
      snapshot = Snapshot.fromShared(update.snapshot)
      if (update.plansVersion !== plansVersion) plans.replace(update.plans)
      else plans.recheck(snapshot)
      plansVersion = update.plansVersion
      access.notifyChange()
    },
    [Symbol.dispose]: () => opened.dispose(),
  }
}

/** Calls at once, and then at most once per WAKE_MS. */
function createRequest(clock: Clock, send: () => void): () => void {
  let sentAtMs = Number.NEGATIVE_INFINITY
  let isWaiting = false

  function sendNow(): void {
    isWaiting = false
    sentAtMs = clock.monotonicMs()
    send()
  }

  return () => {
    if (isWaiting) return
    const waitMs = sentAtMs + WAKE_MS - clock.monotonicMs()
    if (waitMs <= 0) return sendNow()
    isWaiting = true
    clock.setTimer(waitMs, sendNow).unref?.()
  }
}
