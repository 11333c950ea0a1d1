import assert from 'node:assert/strict'
import { messageOf } from '../core/error.ts'
import { resolveSecret, type SecretSources } from '../platform/config/secret-ref.ts'
import { openRedis } from '../platform/db/redis.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { type Access, createCallAccess } from './call-access.ts'
import { type EndingReport, startEndingWatch } from './ending.ts'
import { accessMetrics } from './metrics.ts'
import type { AccessOptions, SharedQuotaOptions } from './options.ts'
import type { Plans } from './plan.ts'
import { ACCOUNT, createAccountMemory } from './quota/account-layout.ts'
import { AccountMemory } from './quota/account-memory.ts'
import { Calendar, HOUR_MS, monthStartMs } from './quota/calendar.ts'
import type { QuotaLedger } from './quota/charge.ts'
import { ACCOUNTS_MAX, createLedger } from './quota/ledger.ts'
import { createPermits } from './quota/permits.ts'
import { type SharedLedger, startSharedLedger } from './quota/shared-quota.ts'
import { createReportedPlans } from './reported-plans.ts'
import { followStore } from './snapshot/follow.ts'
import type { AccessStore } from './store/store.ts'
import type { AccessShare, AccessUpdate } from './thread-access.ts'
import { createUsageMemory } from './usage/event-memory.ts'
import { startUsage, type Usage } from './usage/service.ts'
import { openUsageSpool } from './usage/spool.ts'

export type { Access } from './call-access.ts'

/** How often idle quota accounts are closed. */
const SWEEP_MS = 10_000
const HEALTH_MS = 1000
const STORE_MS = 2000
/** A store that does not respond is reported as degraded after this time: a broken connection may give no error. */
const STORE_SILENCE_MS = 3000
/** How long closing waits for a call that gets no response. */
const STORE_CLOSE_MS = 1000
/** How often old usage rows are pruned, and how many hours at once. */
const PRUNE_MS = 10 * 60_000
const PRUNE_HOURS_MAX = 48
const DAY_MS = 86_400_000
/** Room for accounts of subscriptions that are added while the process runs: as many again. */
const ACCOUNTS_GROWTH = 2
/** Usage that cannot be written is reported after this time; a full disk at once. */
const USAGE_LATE_MS = 5000

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
    monthUnits(): Iterable<{ readonly subscriptionId: string; readonly units: number }>
    /** Applies the plans of a reloaded configuration. */
    setPlans(plans: Plans): void
    /** What `openThreadAccess` needs in a thread, by its number from 1. */
    share(thread: number): AccessShare
    /** What is to be posted to all threads after each change. */
    update(): AccessUpdate
    /** A thread has called `wakeMain`. */
    bookRequested(): void
    /** A thread has ended, however it did: what it counted is booked, and its permits are released. Then its number may be used again. */
    threadEnded(thread: number): void
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
  const { store, clock, lifecycle } = deps
  const { threads = 1 } = options
  const log = deps.log.child({ part: 'access' })
  await using opening = new AsyncDisposableStack()
  const plans = createReportedPlans(options.plans, lifecycle)
  let givenPlans = options.plans
  let plansNumber = 0
  let configuration = 0
  let shared: SharedLedger | undefined
  /** Set once all parts are created. */
  let changed = () => {}

  const follower = opening.use(await followStore(store, { log, clock, onSwap: () => changed() }))
  const calendar = new Calendar(clock)
  const spool = deps.spoolFile === undefined ? undefined : opening.use(await openUsageSpool(deps.spoolFile, { log }))
  const usageMemory = Array.from({ length: threads - 1 }, createUsageMemory)
  const usage = opening.use(
    startUsage({ store, calendar, clock, log, spool, random: deps.random, threads: usageMemory }),
  )
  await bookSpooled()
  lifecycle.onGivenUp?.('usage', () => usage.saveNow())
  const spentBefore = await store.unitsSince(monthStartMs(calendar.month))
  const accountsMax = Math.max(ACCOUNTS_MAX, ACCOUNTS_GROWTH * follower.current().counts().subscriptions)
  const accounts = createAccountMemory({ accountsMax, threads })
  const memory = new AccountMemory(accounts, 0)
  const ending = opening.use(startEndingWatch({ clock, snapshot: follower.current }))
  const metrics = accessMetrics(deps.registry, {
    usage: usage.state,
    ending: ending.report,
    permits: createPermits(memory).total,
    snapshot: () => ({ ...follower.current().counts(), revision: follower.current().revision }),
    shared: () => shared?.state(),
  })
  const ledger = await openLedger(opening, options.quota.shared)
  const ticketKey = await store.sharedKey('ws-ticket')
  const access = opening.use(
    createCallAccess({
      ...{ log, clock, metrics, memory, ledger, usage, ticketKey },
      requestPermits: () => shared?.sendRequestedPermits(),
      snapshot: follower.current,
      plans: plans.current,
    }),
  )

  /** Usage that the last process could not write counts for the quota of the month, so it is written first. */
  async function bookSpooled(): Promise<void> {
    const { waitingRows: rows } = usage.state()
    if (rows === 0) return
    await usage.flush()
    const { failing } = usage.state()
    if (failing === undefined) log.info({ rows }, 'usage of the last run is written to the store')
  }

  async function openLedger(stack: AsyncDisposableStack, given: SharedQuotaOptions | undefined): Promise<QuotaLedger> {
    if (given === undefined) return createLedger({ memory, calendar, spentBefore, configuration: () => configuration })
    const password = given.password === undefined ? undefined : await resolveSecret(given.password, deps)
    const redis = stack.use(openRedis({ url: given.url, password }, { clock, log, random: deps.random }))
    const processId = Buffer.from(deps.random.bytes(8)).toString('hex')
    const { keyPrefix, processesAssumed } = given
    shared = await startSharedLedger(
      { keyPrefix, processesAssumed, processId },
      {
        ...{ redis, memory, calendar, clock, log, metrics, spentBefore, onState: reportQuota },
        configuration: () => configuration,
      },
    )
    return stack.use(shared)
  }

  function reportQuota(isUp: boolean): void {
    if (isUp) lifecycle.recovered('quota')
    else lifecycle.degraded('quota', 'redis is unreachable: each process uses its local share')
  }

  function reportUsage(): void {
    const { failing, spoolFailing } = usage.state()
    const kept =
      spool === undefined || spoolFailing !== undefined
        ? `usage is held in memory${spoolFailing === undefined ? '' : `, because ${spoolFailing}`}`
        : `usage is kept in ${spool.name}`
    if (failing?.code === 'disk-full')
      lifecycle.degraded('disk', `full: no space is left for ${store.name}; changes are refused, ${kept}`)
    else lifecycle.recovered('disk')
    const isLate = failing !== undefined && clock.monotonicMs() - failing.sinceMs >= USAGE_LATE_MS
    if (isLate && failing.code !== 'disk-full')
      lifecycle.degraded('usage', `cannot be written to the store (${failing.code}): ${kept}`)
    else lifecycle.recovered('usage')
  }

  /** Reads the store regularly, so that an unreachable store is reported before it is needed. */
  let probing: Promise<void> | undefined
  function probeStore(): void {
    if (probing !== undefined) return
    const silence = clock.setTimer(STORE_SILENCE_MS, () =>
      lifecycle.degraded('store', 'does not respond, the last snapshot stays in use'),
    )
    silence.unref?.()
    probing = store
      .revision()
      .then(
        () => lifecycle.recovered('store'),
        (error: unknown) =>
          lifecycle.degraded('store', `cannot be read, the last snapshot stays in use: ${messageOf(error)}`),
      )
      .finally(() => {
        silence.cancel()
        probing = undefined
      })
  }
  opening.defer(() => responded(probing))

  /** Deletes few hours at a time, so that a store with many old rows is not busy with it for long. */
  let pruning: Promise<void> | undefined
  let isPruneFailing = false
  const pruneStop = new AbortController()
  function pruneUsage(): void {
    if (options.usage === undefined) return
    // Not by the wall clock: one that is set wrong for a moment would delete what is still to be billed.
    calendar.update(clock.monotonicMs())
    const beforeMs = calendar.hour * HOUR_MS - options.usage.keepDays * DAY_MS
    pruning ??= store
      .pruneUsage(beforeMs, PRUNE_HOURS_MAX, pruneStop.signal)
      .then(
        (hours) => {
          isPruneFailing = false
          if (hours > 0) log.info({ hours, keepDays: options.usage?.keepDays }, 'old usage deleted')
        },
        (error: unknown) => {
          log[isPruneFailing ? 'debug' : 'warn']({ reason: messageOf(error) }, 'old usage could not be deleted')
          isPruneFailing = true
        },
      )
      .finally(() => {
        pruning = undefined
      })
  }
  opening.defer(() => {
    pruneStop.abort()
    return responded(pruning)
  })

  /** Waits for a call of the store, but not for a store that does not respond. */
  async function responded(call: Promise<void> | undefined): Promise<void> {
    if (call === undefined) return
    const { promise: late, resolve } = Promise.withResolvers<void>()
    using _timer = clock.setTimer(STORE_CLOSE_MS, resolve)
    await Promise.race([call, late])
  }

  changed = () => {
    metrics.snapshotSwaps.inc()
    ending.changed()
    configuration += 1
    access.notifyChange()
  }

  function update(): AccessUpdate {
    return { configuration, snapshot: follower.current().shared(), plans: givenPlans, plansNumber }
  }

  for (const timer of [
    clock.setRepeating(SWEEP_MS, () => ledger.sweep(clock.monotonicMs())),
    clock.setRepeating(HEALTH_MS, reportUsage),
    clock.setRepeating(STORE_MS, probeStore),
    clock.setRepeating(PRUNE_MS, pruneUsage),
  ]) {
    timer.unref?.()
    opening.use(timer)
  }

  const opened = opening.move()
  return {
    ...access,
    usage,
    ending: ending.report,
    *monthUnits() {
      for (let cell = 1; cell < memory.cellsEnd; cell++) {
        if (!memory.isAccount(cell) || memory.float(cell, ACCOUNT.month) !== calendar.month) continue
        const units = memory.float(cell, ACCOUNT.used)
        if (units > 0) yield { subscriptionId: memory.nameOf(cell), units }
      }
    },
    setPlans(next) {
      plans.replace(next)
      givenPlans = next
      plansNumber += 1
      configuration += 1
      access.notifyChange()
    },
    update,
    share(thread) {
      const events = usageMemory[thread - 1]
      assert(events !== undefined, 'access was started for fewer threads')
      const isQuotaShared = shared !== undefined
      return { ...update(), thread, accounts, calendar: calendar.shared, usage: events, ticketKey, isQuotaShared }
    },
    bookRequested: () => shared?.sendRequested(),
    threadEnded(thread) {
      // Locks first: other threads may wait for them.
      memory.unlockAll(thread)
      usage.threadEnded(thread)
      memory.permits.reclaim(thread)
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
