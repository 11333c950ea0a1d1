import type { Clock } from '../core/clock.ts'
import { DAY_MS } from '../core/human-units.ts'
import { createTimeSlices, type TimeSlices } from '../platform/process/time-slices.ts'
import { createFirstInOrder } from './first-in-order.ts'
import type { AccessSnapshot } from './snapshot/snapshot.ts'
import type { Customer, Subscription } from './store/model.ts'

/** A subscription that works now and ends soon. */
export type EndingSubscription = {
  readonly name: string
  readonly customer: string
  /** Unix ms. */
  readonly validUntil: number
}

export type EndingReport = {
  /** Counts of subscriptions that end within a day and within seven days. */
  readonly within1d: number
  readonly within7d: number
  /** The next ones to end. */
  readonly next: readonly EndingSubscription[]
}

export type EndingWatch = AsyncDisposable & {
  report(): EndingReport
  /** Checks again soon: the store has changed. */
  changed(): void
}

const WARNING_MS = 7 * DAY_MS
const CHECK_MS = 60_000
/** After a change, so that many changes in a row cause one check. */
const CHANGE_MS = 1000
const NEXT_MAX = 10

const NONE: EndingReport = { within1d: 0, within7d: 0, next: [] }

/** Whether the subscription works now and ends within this time. */
export function endsWithin(
  { state, validUntil }: Subscription,
  customer: Customer | undefined,
  { nowMs, spanMs }: { readonly nowMs: number; readonly spanMs: number },
): boolean {
  if (state !== 'active' || customer?.state !== 'active' || validUntil === null) return false
  return validUntil > nowMs && validUntil <= nowMs + spanMs
}

export type EndingWatchDeps = {
  readonly clock: Clock
  snapshot(): AccessSnapshot
  /** Time slices of the event loop, between which a check yields. */
  readonly slices?: () => Pick<TimeSlices, 'isSpent' | 'yield'>
}

/** Finds the subscriptions that end soon, once a minute and after changes. In time slices: there may be very many. */
export function startEndingWatch(deps: EndingWatchDeps): EndingWatch {
  const { clock } = deps
  let report = NONE
  let checking: Promise<void> | undefined
  let isClosed = false
  let isAgainDue = false
  let soon: { cancel(): void } | undefined

  async function check(): Promise<void> {
    const slices = deps.slices?.() ?? createTimeSlices()
    const snapshot = deps.snapshot()
    const nowMs = clock.nowMs()
    const next = createFirstInOrder<EndingSubscription>(
      NEXT_MAX,
      (a, b) => a.validUntil - b.validUntil || (a.name < b.name ? -1 : 1),
    )
    let within1d = 0
    let within7d = 0
    for (const subscription of snapshot.subscriptions()) {
      if (slices.isSpent()) await slices.yield()
      if (isClosed) return
      const { name, customerId, validUntil } = subscription
      const customer = snapshot.customer(customerId)
      if (validUntil === null || !endsWithin(subscription, customer, { nowMs, spanMs: WARNING_MS })) continue
      if (validUntil <= nowMs + DAY_MS) within1d += 1
      within7d += 1
      next.add({ name, customer: customer?.name ?? customerId, validUntil })
    }
    report = { within1d, within7d, next: next.items() }
  }

  /** A change during a check may concern what was read already, so another check follows. */
  function start(): void {
    if (checking !== undefined) {
      isAgainDue = true
      return
    }
    checking = check().finally(() => {
      checking = undefined
      if (!isAgainDue || isClosed) return
      isAgainDue = false
      start()
    })
  }

  start()
  const timer = clock.setRepeating(CHECK_MS, start)
  timer.unref?.()
  return {
    report: () => report,
    changed() {
      if (soon !== undefined) return
      const wait = clock.setTimer(CHANGE_MS, () => {
        soon = undefined
        start()
      })
      wait.unref?.()
      soon = wait
    },
    async [Symbol.asyncDispose]() {
      isClosed = true
      soon?.cancel()
      timer.cancel()
      await checking
    },
  }
}
