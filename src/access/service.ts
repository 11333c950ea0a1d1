import assert from 'node:assert/strict'
import type { SecretSources } from '../platform/config/secret-ref.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { type Access, createCallAccess } from './call-access.ts'
import { type EndingReport, startEndingWatch } from './ending.ts'
import { accessMetrics } from './metrics.ts'
import type { AccessOptions } from './options.ts'
import type { Plans } from './plan.ts'
import { Calendar, monthStartMs } from './quota/calendar.ts'
import { ACCOUNTS_MAX, createLedger, type MonthUnits, monthUnits } from './quota/ledger.ts'
import { QuotaMemory } from './quota/memory.ts'
import { createQuotaMemory } from './quota/memory-layout.ts'
import { createMonthReader } from './quota/month-reader.ts'
import { openSharedLedger } from './quota/open-shared-ledger.ts'
import { createPermits } from './quota/permits.ts'
import type { SharedLedger } from './quota/shared-ledger.ts'
import { createSweep } from './quota/sweep.ts'
import { followStore } from './snapshot/follow.ts'
import { createStoreProbe } from './store/probe.ts'
import type { AccessStore } from './store/store.ts'
import type { AccessUpdate, ThreadAccessStart } from './thread-access.ts'
import { createUpdateVersions } from './update-versions.ts'
import { createUsageMemory } from './usage/event-memory.ts'
import { reportUsageHealth } from './usage/health.ts'
import { createUsageRetention } from './usage/retention.ts'
import { startUsage, type Usage } from './usage/service.ts'
import { openUsageSpool } from './usage/spool.ts'

/** How often idle quota accounts are closed. */
const SWEEP_MS = 10_000
const USAGE_HEALTH_MS = 1000
const STORE_PROBE_MS = 2000
/** How often old usage rows are pruned. */
const PRUNE_MS = 10 * 60_000
/** Room for accounts of subscriptions that are added while the process runs: as many again. */
const ACCOUNTS_GROWTH = 2

export type AccessDeps = BaseDeps &
  SecretSources & {
    /** Opened and closed by the caller. */
    readonly store: AccessStore
    readonly registry: MetricsRegistry
    readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'> & Partial<Pick<Lifecycle, 'onGivenUp'>>
    /** Where usage is kept while the store cannot be written: a file in the locked state folder. Without it, in memory. */
    readonly spoolFile?: string
  }

/** Access in the main thread, which keeps it current for all threads. */
export type AccessService = Access &
  AsyncDisposable & {
    readonly usage: Pick<Usage, 'flush' | 'state'>
    /** Subscriptions that end soon. */
    ending(): EndingReport
    /** Units of this month by subscription, of those that have used some. */
    monthUnits(): Iterable<MonthUnits>
    /** Applies the plans of a reloaded configuration. */
    setPlans(plans: Plans): void
    /** What `openThreadAccess` needs in a thread, by its number from 1. */
    startDataOf(thread: number): ThreadAccessStart
    /** What is to be posted to all threads after each change. */
    update(): AccessUpdate
    /** Sends the quota bookings and permits that threads have requested: one of them has called `requestBookings`. */
    sendRequestedBookings(): void
    /** A thread has ended, however it did: what it counted is added to the usage, and its permits are released. When that is done, its number may be used again. */
    threadEnded(thread: number): Promise<void>
  }

export type StartAccessOptions = Pick<AccessOptions, 'quota' | 'plans'> &
  Partial<Pick<AccessOptions, 'usage'>> & {
    /** The threads that use this access, the main thread included. */
    readonly threads?: number
  }

/**
 * Follows the store with a snapshot and admits calls from memory. When the store becomes unreachable, the last snapshot stays in use and usage is
 * kept on the disk until it can be written.
 */
export async function startAccess(options: StartAccessOptions, deps: AccessDeps): Promise<AccessService> {
  const { store, clock, random, lifecycle } = deps
  const { threads = 1 } = options
  const log = deps.log.child({ part: 'access' })
  await using opening = new AsyncDisposableStack()
  const versions = createUpdateVersions(options.plans, lifecycle)
  const follower = opening.use(await followStore(store, { log, clock }))

  // The newest usage shows whether the clock of a machine that has just been started is right.
  const calendar = new Calendar(clock, {
    recordedMs: await store.billing.lastHour(0, Number.MAX_SAFE_INTEGER),
    onJump: (byMs) => log.warn({ byMs }, 'the wall clock has jumped'),
  })
  const spool = deps.spoolFile === undefined ? undefined : opening.use(await openUsageSpool(deps.spoolFile, { log }))
  const usageMemory = Array.from({ length: threads - 1 }, createUsageMemory)
  const usage = opening.use(startUsage({ store, calendar, clock, log, spool, random, threads: usageMemory }))
  await writeSpooledUsage(usage, log)
  lifecycle.onGivenUp?.('usage', () => usage.saveNow())

  const monthRead = calendar.month
  const spentBefore = await store.unitsSince(monthStartMs(monthRead))
  const accountsMax = Math.max(ACCOUNTS_MAX, ACCOUNTS_GROWTH * follower.current().counts().subscriptions)
  const quota = createQuotaMemory({ accountsMax, threads })
  const memory = new QuotaMemory(quota, 0)
  const ending = opening.use(startEndingWatch({ clock, snapshot: follower.current }))
  /** Undefined where the quota is not shared with other processes, and until it is. */
  let shared: SharedLedger | undefined
  const metrics = accessMetrics(deps.registry, {
    usage: usage.state,
    ending: ending.report,
    permits: createPermits(memory).total,
    snapshot: () => ({ ...follower.current().counts(), revision: follower.current().revision }),
    shared: () => shared?.state(),
  })
  const ledgerDeps = { memory, calendar, spentBefore, limitsVersion: versions.version }
  if (options.quota.shared !== undefined)
    shared = opening.use(await openSharedLedger(options.quota.shared, { ...deps, log, metrics, ...ledgerDeps }))
  const ledger = shared ?? createLedger(ledgerDeps)

  const ticketKey = await store.sharedKey('ws-ticket')
  const access = opening.use(
    createCallAccess({
      log,
      clock,
      metrics,
      memory,
      ledger,
      usage,
      ticketKey,
      requestPermits: () => shared?.sendRequestedPermits(),
      snapshot: follower.current,
      plans: versions.plans,
      onMissingPlan: versions.missingPlan,
    }),
  )
  follower.onSwap(() => {
    metrics.snapshotSwaps.inc()
    ending.changed()
    versions.snapshotReplaced(follower.current())
    access.notifyChange()
  })

  const probe = opening.use(createStoreProbe({ store, clock, lifecycle }))
  const retention = opening.use(options.usage && createUsageRetention(options.usage, { store, calendar, clock, log }))
  const months = createMonthReader({ store, memory, calendar, log, monthRead })
  const accounts = createSweep(ledger, clock)
  const sweep = () => {
    calendar.update(clock.monotonicMs())
    void accounts.run().catch((error: unknown) => log.error({ err: error }, 'idle accounts could not be closed'))
    months.run()
  }
  const reportUsage = () =>
    reportUsageHealth(usage.state(), { storeName: store.name, spool, lifecycle, monotonicMs: clock.monotonicMs() })
  for (const timer of [
    clock.setRepeating(SWEEP_MS, sweep),
    clock.setRepeating(USAGE_HEALTH_MS, reportUsage),
    clock.setRepeating(STORE_PROBE_MS, probe.run),
    clock.setRepeating(PRUNE_MS, () => retention?.run()),
  ]) {
    timer.unref?.()
    opening.use(timer)
  }

  const update = () => versions.updateWith(follower.current())
  const opened = opening.move()
  return {
    ...access,
    usage,
    ending: ending.report,
    monthUnits: () => monthUnits(memory, calendar),
    setPlans(plans) {
      versions.setPlans(plans)
      access.notifyChange()
    },
    update,
    startDataOf(thread) {
      const events = usageMemory[thread - 1]
      assert(events !== undefined, 'access was started for fewer threads')
      const isQuotaShared = shared !== undefined
      return { ...update(), thread, quota, calendar: calendar.shared, usage: events, ticketKey, isQuotaShared }
    },
    sendRequestedBookings: () => shared?.sendRequested(),
    async threadEnded(thread) {
      // Locks first: other threads may wait for them.
      memory.unlockAll(thread)
      usage.threadEnded(thread)
      await memory.permitTable.reclaim(thread, memory.cellsEnd)
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** Usage that the last process could not write counts for the quota of the month, so it is written first. */
async function writeSpooledUsage(usage: Usage, log: Logger): Promise<void> {
  const { waitingRows: rows } = usage.state()
  if (rows === 0) return
  await usage.flush()
  const { failing } = usage.state()
  if (failing === undefined) log.info({ rows }, 'usage of the last run is written to the store')
}
