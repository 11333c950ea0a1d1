import { createHash } from 'node:crypto'
import type { BillingBalance, LedgerPage, NewBillingEvent } from '../../access/store/billing/store.ts'
import type { BillingEvent, BillingState } from '../../access/store/billing/tables.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { HOUR_MS } from '../../core/human-units.ts'
import type { BillingOptions, BillingSinkName } from './options.ts'

/** Their events, some hundred, are one transaction. */
const SUBSCRIPTIONS_PER_PAGE = 50
const STEPS_PER_PASS = 6
/** Customers without a billing id that are remembered for the status. */
const UNMAPPED_MAX = 20

export type PlanOptions = Pick<BillingOptions, 'quantities' | 'settleMs'> & {
  readonly sink: BillingSinkName
  readonly subject: 'customer' | 'subscription'
  /** Start of the first day that is sent, where it is configured. */
  readonly fromMs: number | undefined
}

/** A place among the usage of an hour. */
type Cursor = { hour: number; after: string }

export type PlanTime = {
  readonly nowMs: number
  /** Whether the clock has been right for long enough to go back by it. */
  readonly isCertain: boolean
}

/** What a pass plans: hours from `fromHour` to `closedHour`. */
type Range = { readonly fromHour: number; readonly closedHour: number }

export type EventPlanner = {
  /** Makes the events of some pages of the ledger. Returns whether there is more to do at once. */
  run(state: BillingState, time: PlanTime): Promise<boolean>
  /** Names of customers whose usage waits for a billing id. */
  unmapped(): readonly string[]
}

/**
 * Makes events from the ledger: of each hour when it is closed and settled, and again of hours that got usage later. Both have a mark in the store. An event has what the ledger has
 * more than the events before it, so that their sum is the ledger's however often an hour is looked at.
 */
export function createEventPlanner(
  options: PlanOptions,
  { store, onStep }: { readonly store: AccessStore; readonly onStep: (step: string) => void },
): EventPlanner {
  const { sink, settleMs } = options
  const { billing } = store
  const unmapped = new Map<string, string>()
  let marked: (Cursor & { marks: number }) | undefined
  let recheck: Cursor | undefined

  /** Plans one page and moves the cursor. True when the hour is complete. */
  async function planPage(state: BillingState, at: Cursor): Promise<boolean> {
    const page = await billing.page(at.hour, at.after, SUBSCRIPTIONS_PER_PAGE)
    const subjects = await subjectsOf(page)
    await billing.plan(sink, page, (balance) => nextPart(state, balance, subjects))
    onStep('planned')
    at.after = page.subscriptionIds.at(-1) ?? at.after
    return page.isLast
  }

  function nextPart(
    { storeId }: BillingState,
    { row, quantity, amount, promised, lastPart }: BillingBalance,
    subjects: ReadonlyMap<string, string>,
  ): NewBillingEvent | undefined {
    const { subscriptionId, hour, interface: at } = row
    const subject = subjects.get(subscriptionId)
    if (subject === undefined || amount === promised || !options.quantities.includes(quantity)) return undefined
    const part = lastPart + 1
    const of = { subscriptionId, hour, interface: at, quantity, part }
    return { id: eventId(storeId, of), ...of, amount: amount - promised, subject }
  }

  async function subjectsOf({ subscriptionIds }: LedgerPage): Promise<ReadonlyMap<string, string>> {
    if (options.subject === 'subscription') return new Map(subscriptionIds.map((id) => [id, id]))
    const found = new Map<string, string>()
    const customerOf = new Map<string, string>()
    for (const id of subscriptionIds) {
      const subscription = await store.get('subscriptions', id)
      if (subscription !== undefined) customerOf.set(id, subscription.customerId)
    }
    const billingIds = await billing.billingIds([...new Set(customerOf.values())])
    for (const [id, customerId] of customerOf) {
      // Stripe knows customers by its own ids only.
      const subject = billingIds.get(customerId) ?? (sink === 'stripe' ? undefined : customerId)
      if (subject === undefined) await addUnmapped(customerId)
      else {
        unmapped.delete(customerId)
        found.set(id, subject)
      }
    }
    return found
  }

  async function addUnmapped(customerId: string): Promise<void> {
    if (unmapped.has(customerId) || unmapped.size >= UNMAPPED_MAX) return
    unmapped.set(customerId, (await store.get('customers', customerId))?.name ?? customerId)
  }

  /** Marks the next closed hour, or goes back to the last one. False when nothing is to be done. */
  async function openHour(
    { plannedHour }: BillingState,
    { fromHour, closedHour }: Range,
    isCertain: boolean,
  ): Promise<boolean> {
    const plannedMax = Math.max(closedHour, fromHour - HOUR_MS)
    // After a start with a clock that was ahead: status and metrics would show hours as planned that are still to come.
    const isAhead = isCertain && plannedHour > plannedMax
    if (plannedHour >= closedHour && !isAhead) return false
    const hour = isAhead ? plannedMax : await billing.nextHour(plannedHour + HOUR_MS, closedHour)
    await billing.openHour(sink, hour ?? closedHour)
    onStep('hour-opened')
    return true
  }

  /** Plans a page of a marked hour. False when there is none. An open hour may have a mark where a clock was ahead: its events would have many parts. */
  async function planMarked(state: BillingState, { fromHour, closedHour }: Range): Promise<boolean> {
    if (marked === undefined) {
      const found = await billing.markedHour(sink)
      if (found === undefined || found.hour > closedHour) return false
      marked = { ...found, after: '' }
    }
    if (marked.hour >= fromHour && !(await planPage(state, marked))) return true
    const done = marked
    marked = undefined
    await billing.unmarkHour(sink, done)
    onStep('hour-planned')
    return true
  }

  /**
   * Looks at everything again, slowly: usage that was added in the moment in which its hour was planned has no mark. The newest hours first: they are
   * found also by a process that is restarted often, and while the billing system still accepts them.
   */
  async function planAgain(state: BillingState, { fromHour, closedHour }: Range): Promise<void> {
    recheck ??= { hour: Math.min(state.plannedHour, closedHour), after: '' }
    const hour = await billing.lastHour(fromHour, recheck.hour)
    if (hour === undefined) {
      recheck = undefined
      return
    }
    if (hour !== recheck.hour) recheck = { hour, after: '' }
    if (await planPage(state, recheck)) recheck = { hour: hour - HOUR_MS, after: '' }
  }

  return {
    async run(given, { nowMs, isCertain }) {
      const closedHour = Math.floor((nowMs - settleMs) / HOUR_MS) * HOUR_MS - HOUR_MS
      const range: Range = { fromHour: options.fromMs ?? given.fromHour, closedHour }
      let state = given
      for (let steps = 0; steps < STEPS_PER_PASS; steps++) {
        if (await planMarked(state, range)) continue
        if (!(await openHour(state, range, isCertain))) {
          await planAgain(state, range)
          return false
        }
        state = (await billing.state(sink)) ?? state
      }
      return true
    },
    unmapped: () => [...unmapped.values()],
  }
}

/** Computed from the usage alone: every process that plans this part gives it the same id. */
function eventId(
  storeId: string,
  of: Pick<BillingEvent, 'subscriptionId' | 'hour' | 'interface' | 'quantity' | 'part'>,
): string {
  const text = JSON.stringify([storeId, of.subscriptionId, of.hour, of.interface, of.quantity, of.part])
  return createHash('sha256').update(text).digest('hex')
}
