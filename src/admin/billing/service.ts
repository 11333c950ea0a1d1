import type { BillingStore, BillingSummary } from '../../access/store/billing/store.ts'
import type { BillingState } from '../../access/store/billing/tables.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { parseDay } from '../../contract/dates.ts'
import { isLoopbackName } from '../../contract/public-url.ts'
import type { Clock, Timer } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import { HOUR_MS } from '../../core/human-units.ts'
import type { Random } from '../../core/random.ts'
import { createUlid } from '../../core/ulid.ts'
import { resolveSecret, type SecretSources } from '../../platform/config/secret-ref.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { settledWithin } from '../../platform/process/clock.ts'
import type { MetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import { createLago } from './lago.ts'
import { billingMetrics } from './metrics.ts'
import { createOpenMeter } from './openmeter.ts'
import type { BillingOptions, BillingSinkName } from './options.ts'
import { createPusher } from './pusher.ts'
import type { BillingSink } from './sink.ts'
import { createStripe } from './stripe.ts'

/** After a pass that failed, which is a failure of the store. */
const RETRY_MS = 10_000
/** How often the figures of the metrics are read. */
const SUMMARY_MS = 15_000
/** How long closing waits for a request that is under way. */
const CLOSE_MS = 2000

const URLS: Readonly<Record<BillingSinkName, string>> = {
  openmeter: 'https://openmeter.cloud',
  lago: 'https://api.getlago.com',
  stripe: 'https://api.stripe.com',
}

export type Billing = AsyncDisposable & {
  status(): BillingProcessStatus
}

/** What only the process that sends knows. */
export type BillingProcessStatus = {
  readonly failing: string | undefined
  /** Unix ms; undefined if nothing was accepted since the start. */
  readonly lastSuccessMs: number | undefined
  /** Customers whose usage waits because they have no billing id. */
  readonly unmapped: readonly string[]
}

export type BillingDeps = BaseDeps &
  SecretSources & {
    /** Opened and closed by the caller. */
    readonly store: AccessStore
    readonly registry: MetricsRegistry
  }

/** A billing system of one's own may be in a network that only the operator uses, so it is not refused. */
const KEY_IS_READABLE = 'the API key of the billing system is sent without encryption: use https in billing.url'

function isReadable(url: string | undefined): boolean {
  return url?.startsWith('http:') === true && !isLoopbackName(new URL(url).hostname)
}

/** Sends usage to the billing system of the options, for as long as it is open. Undefined where none is configured. */
export async function startBilling(options: BillingOptions, deps: BillingDeps): Promise<Billing | undefined> {
  if (options.sink === undefined) return undefined
  const { store, clock, random } = deps
  const log = deps.log.child({ part: 'billing' })
  const name = options.sink
  const fromMs = options.from === undefined ? undefined : parseDay(options.from)
  const { storeId } = await beginBilling(store.billing, name, { clock, random, fromMs })
  const sink = await createSink({ ...options, sink: name, storeId }, deps)
  if (options.key !== undefined && isReadable(options.url)) log.warn({ url: options.url }, KEY_IS_READABLE)
  const subject = options.subject ?? (name === 'lago' ? 'subscription' : 'customer')
  const owner = createUlid(clock.nowMs(), random)
  const recordedMs = await store.billing.lastHour(0, Number.MAX_SAFE_INTEGER)
  const pusher = createPusher(
    { ...options, sink: name, subject, fromMs },
    { store, sink, clock, random, log, owner, recordedMs },
  )

  let figures: BillingFigures = NO_FIGURES
  billingMetrics(deps.registry, {
    counts: () => pusher.counts,
    figures: () => ({ ...figures, behindMs: Math.max(0, clock.nowMs() - figures.dueMs) }),
  })

  let timer: Timer | undefined
  let running: Promise<void> | undefined
  let isClosed = false
  let isStoreFailing = false
  let nextSummaryMs = 0

  async function run(): Promise<void> {
    let nextMs = RETRY_MS
    try {
      nextMs = await pusher.pass()
      isStoreFailing = false
    } catch (error) {
      if (!isStoreFailing) log.warn({ reason: messageOf(error) }, 'billing events wait for the store')
      isStoreFailing = true
    }
    await refreshFigures()
    running = undefined
    if (!isClosed) schedule(nextMs)
  }

  /** Also after a pass that failed. Where they cannot be read, the last figures stay, and the time that billing is behind goes on. */
  async function refreshFigures(): Promise<void> {
    if (clock.monotonicMs() < nextSummaryMs) return
    try {
      figures = await readFigures(store.billing, name, options.settleMs)
      nextSummaryMs = clock.monotonicMs() + SUMMARY_MS
    } catch {}
  }

  function schedule(delayMs: number): void {
    timer = clock.setTimer(delayMs, () => {
      running = run()
    })
    timer.unref?.()
  }
  schedule(0)

  return {
    status: () => ({
      failing: pusher.failing(),
      lastSuccessMs: pusher.lastSuccessMs(),
      unmapped: pusher.unmapped(),
    }),
    async [Symbol.asyncDispose]() {
      isClosed = true
      timer?.cancel()
      await settledWithin(running, CLOSE_MS, clock)
      await store.billing.release(name, owner).catch(() => {})
      sink[Symbol.dispose]()
    },
  }
}

/** Begins the events of a sink where there are none: with the hour of the first start, unless a day is given. */
export function beginBilling(
  billing: BillingStore,
  sink: BillingSinkName,
  { clock, random, fromMs }: { clock: Clock; random: Random; fromMs: number | undefined },
): Promise<BillingState> {
  const nowMs = clock.nowMs()
  const fromHour = fromMs ?? Math.floor(nowMs / HOUR_MS) * HOUR_MS
  const storeId = createUlid(nowMs, random)
  const none = { paused: false, owner: null, leaseUntil: 0 }
  return billing.begin({ sink, storeId, fromHour, plannedHour: fromHour - HOUR_MS, ...none })
}

async function createSink(
  options: BillingOptions & { readonly sink: BillingSinkName; readonly storeId: string },
  deps: SecretSources & { readonly clock: Clock },
): Promise<BillingSink> {
  const { sink, url = URLS[sink] } = options
  const address = { url, key: options.key === undefined ? undefined : await resolveSecret(options.key, deps) }
  if (sink === 'openmeter') return createOpenMeter(address, options, deps)
  return sink === 'lago' ? createLago(address, options, deps) : createStripe(address, options, deps)
}

export type BillingFigures = {
  readonly waiting: number
  readonly dead: number
  /** When the oldest hour whose events are not all sent can be sent. */
  readonly dueMs: number
}

const NO_FIGURES: BillingFigures = { waiting: 0, dead: 0, dueMs: Number.POSITIVE_INFINITY }

async function readFigures(billing: BillingStore, sink: string, settleMs: number): Promise<BillingFigures> {
  const [summary, state] = await Promise.all([billing.summary(sink), billing.state(sink)])
  return { waiting: summary.waiting, dead: summary.dead, dueMs: dueMs(summary, state, settleMs) }
}

/** Since the oldest closed hour whose events are not all sent could be sent. */
export function behindMs(
  summary: BillingSummary,
  state: BillingState | undefined,
  { nowMs, settleMs }: { readonly nowMs: number; readonly settleMs: number },
): number {
  return Math.max(0, nowMs - dueMs(summary, state, settleMs))
}

function dueMs(
  { oldestWaitingHour, oldestMarkedHour }: BillingSummary,
  state: BillingState | undefined,
  settleMs: number,
): number {
  if (state === undefined) return Number.POSITIVE_INFINITY
  const oldest = Math.min(
    oldestWaitingHour ?? Number.POSITIVE_INFINITY,
    oldestMarkedHour ?? Number.POSITIVE_INFINITY,
    state.plannedHour + HOUR_MS,
  )
  return oldest + HOUR_MS + settleMs
}
