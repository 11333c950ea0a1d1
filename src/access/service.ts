import { ERRORS } from '../contract/errors.ts'
import type { ProductKey } from '../contract/products.ts'
import { messageOf } from '../core/error.ts'
import { resolveSecret, type SecretSources } from '../platform/config/secret-ref.ts'
import { openRedis } from '../platform/db/redis.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { type Admissions, type Caller, createAdmission, type Refused, type RefusedCall } from './authorize.ts'
import { createCustomerLog } from './customer-log.ts'
import { type EndingReport, startEndingWatch } from './ending.ts'
import { accessMetrics } from './metrics.ts'
import type { AccessOptions, SharedQuotaOptions } from './options.ts'
import { createPlanTable, type Plans, type PlanTable } from './plan.ts'
import { createAccountMemory } from './quota/account-layout.ts'
import { AccountMemory } from './quota/account-memory.ts'
import { Calendar, monthStartMs } from './quota/calendar.ts'
import type { QuotaLedger } from './quota/charge.ts'
import { ACCOUNTS_MAX, createLedger } from './quota/ledger.ts'
import { createPermits, type Permits } from './quota/permits.ts'
import { type SharedLedger, startSharedLedger } from './quota/shared-quota.ts'
import { followStore } from './snapshot/follow.ts'
import type { AccessSnapshot } from './snapshot/snapshot.ts'
import type { AccessStore } from './store/store.ts'
import { startUsage, type Usage } from './usage/service.ts'
import { openUsageSpool } from './usage/spool.ts'
import { createWsTickets, type Ticket } from './ws-ticket.ts'

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
/** Missing plans listed in the report. */
const UNKNOWN_PLANS_MAX = 5

export type AccessDeps = BaseDeps &
  SecretSources & {
    /** Opened and closed by the caller. */
    readonly store: AccessStore
    readonly registry: MetricsRegistry
    readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'> & Partial<Pick<Lifecycle, 'onGivenUp'>>
    /** Where usage is kept while the store cannot be written: a file in the locked state folder. Without it, in memory. */
    readonly spoolFile?: string
  }

/** Authenticates callers, admits and charges calls. Used by every interface. */
export type Access = AsyncDisposable &
  Admissions & {
    snapshot(): AccessSnapshot
    readonly permits: Permits
    readonly usage: Pick<Usage, 'flush' | 'state'>
    /** Subscriptions that end soon. */
    ending(): EndingReport
    plans(): PlanTable
    /** Applies the plans of a reloaded configuration. */
    setPlans(plans: Plans): void
    /** Calls the listener after the store or the plans have changed, so that it can `renew` the callers of open streams. */
    onChange(listener: () => void): Disposable
    /** A ticket that authenticates WebSocket connections of clients that cannot set headers. */
    issueTicket(caller: Caller, nowMs: number): Ticket
    authenticateTicket(ticket: string, product: ProductKey, nowMs: number): Caller | Refused
  }

export type StartAccessOptions = Pick<AccessOptions, 'quota' | 'plans'> & Partial<Pick<AccessOptions, 'usage'>>

/**
 * Follows the store with a snapshot and admits calls from memory. When the store becomes unreachable, the last snapshot stays in use and usage is
 * kept on the disk until it can be written.
 */
export async function startAccess(options: StartAccessOptions, deps: AccessDeps): Promise<Access> {
  const { store, clock, lifecycle } = deps
  const log = deps.log.child({ part: 'access' })
  await using opening = new AsyncDisposableStack()
  const listeners = new Set<() => void>()
  const unknownPlans = new Set<string>()
  let plans = createPlanTable(options.plans, reportUnknownPlan)
  let shared: SharedLedger | undefined
  /** Set once all parts are created. */
  let changed = () => {}

  const follower = opening.use(await followStore(store, { log, clock, onSwap: () => changed() }))
  const calendar = new Calendar(clock)
  const spool = deps.spoolFile === undefined ? undefined : opening.use(await openUsageSpool(deps.spoolFile, { log }))
  const usage = opening.use(startUsage({ store, calendar, clock, log, spool, random: deps.random }))
  await bookSpooled()
  lifecycle.onGivenUp?.('usage', () => usage.saveNow())
  const spentBefore = await store.unitsSince(monthStartMs(calendar.month))
  const accountsMax = Math.max(ACCOUNTS_MAX, ACCOUNTS_GROWTH * follower.current().counts().subscriptions)
  const memory = new AccountMemory(createAccountMemory({ accountsMax, threads: 1 }), 0)
  const permits = createPermits(memory, () => shared?.sendRequestedPermits())
  const ending = opening.use(startEndingWatch({ clock, snapshot: follower.current }))
  const metrics = accessMetrics(deps.registry, {
    usage: usage.state,
    ending: ending.report,
    permits: permits.total,
    snapshot: () => ({ ...follower.current().counts(), revision: follower.current().revision }),
    shared: () => shared?.state(),
  })
  const ledger = await openLedger(opening, options.quota.shared)
  const customerLog = opening.use(createCustomerLog({ log, clock }))
  const tickets = createWsTickets(await store.sharedKey('ws-ticket'))
  const admission = createAdmission({
    snapshot: follower.current,
    plans: () => plans,
    ledger,
    usage,
    clock,
    metrics,
    onRefused: (subscription, why) => customerLog.note({ subscription, message: 'refused', kind: refusalFields(why) }),
  })

  /** Usage that the last process could not write counts for the quota of the month, so it is written first. */
  async function bookSpooled(): Promise<void> {
    const { waitingRows: rows } = usage.state()
    if (rows === 0) return
    await usage.flush()
    const { failing } = usage.state()
    if (failing === undefined) log.info({ rows }, 'usage of the last run is written to the store')
  }

  async function openLedger(stack: AsyncDisposableStack, given: SharedQuotaOptions | undefined): Promise<QuotaLedger> {
    if (given === undefined) return createLedger({ memory, calendar, spentBefore })
    const password = given.password === undefined ? undefined : await resolveSecret(given.password, deps)
    const redis = stack.use(openRedis({ url: given.url, password }, { clock, log, random: deps.random }))
    const processId = Buffer.from(deps.random.bytes(8)).toString('hex')
    const { keyPrefix, processesAssumed } = given
    shared = await startSharedLedger(
      { keyPrefix, processesAssumed, processId },
      { redis, memory, calendar, clock, log, metrics, spentBefore, onState: reportQuota },
    )
    return stack.use(shared)
  }

  function reportQuota(isUp: boolean): void {
    if (isUp) lifecycle.recovered('quota')
    else lifecycle.degraded('quota', 'redis is unreachable: each process uses its local share')
  }

  /** Called when such a subscription is used: checking all of them at each change would block the event loop. */
  function reportUnknownPlan(name: string): void {
    if (unknownPlans.size >= UNKNOWN_PLANS_MAX) return
    unknownPlans.add(name)
    lifecycle.degraded(
      'plans',
      `not configured, so their subscriptions have the smallest plan: ${[...unknownPlans].join(', ')}`,
    )
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

  /** Deletes few hours at a time, so that a store with many old rows is not locked for long. */
  let pruning: Promise<void> | undefined
  function pruneUsage(): void {
    if (options.usage === undefined) return
    const beforeMs = clock.nowMs() - options.usage.keepDays * DAY_MS
    pruning ??= store
      .pruneUsage(beforeMs, PRUNE_HOURS_MAX)
      .then(
        (hours) => {
          if (hours > 0) log.info({ hours, keepDays: options.usage?.keepDays }, 'old usage deleted')
        },
        (error: unknown) => log.debug({ reason: messageOf(error) }, 'old usage could not be deleted'),
      )
      .finally(() => {
        pruning = undefined
      })
  }
  opening.defer(() => responded(pruning))

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
    for (const listener of listeners) listener()
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
    ...admission,
    snapshot: follower.current,
    permits: {
      ...permits,
      acquire(subscriptionId, name, limits) {
        const permit = permits.acquire(subscriptionId, name, limits)
        if (!permit.ok) {
          metrics.limited[name].inc()
          const kind = { limit: name, size: permit.limitSize, code: ERRORS['rate-limited'].jsonRpc }
          customerLog.note({ subscription: subscriptionId, message: 'refused', kind })
        }
        return permit
      },
    },
    usage,
    ending: ending.report,
    plans: () => plans,
    setPlans(next) {
      plans = createPlanTable(next, reportUnknownPlan)
      unknownPlans.clear()
      lifecycle.recovered('plans')
      for (const listener of listeners) listener()
    },
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    issueTicket: (caller, nowMs) => tickets.issue(caller.tokenSha256, nowMs),
    authenticateTicket(ticket, product, nowMs) {
      const checked = tickets.check(ticket, nowMs)
      if (checked.ok) return admission.renew(checked.tokenSha256, product, nowMs)
      metrics.refused[checked.reason].inc()
      return { ...checked, isTicket: true }
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** The log fields of a refusal. */
function refusalFields(why: RefusedCall): Record<string, string | number> {
  if ('limit' in why) return { interface: why.interface, limit: why.limit, code: ERRORS['rate-limited'].jsonRpc }
  const code = why.reason === 'not-assigned' ? ERRORS['not-assigned'].jsonRpc : ERRORS.unauthorized.jsonRpc
  return { product: why.product, reason: why.reason, code }
}
