import type { Actor, UsageRow } from '../model.ts'
import type { BillingEvent, BillingQuantity, BillingState } from './tables.ts'

/** An event before it has its state. */
export type NewBillingEvent = Omit<BillingEvent, 'eventKey' | 'sink' | 'state' | 'doubtSince' | 'reason'>

/** The usage of one hour of the subscriptions after `after`, in the order of their ids. */
export type LedgerPage = {
  readonly hour: number
  readonly after: string
  readonly subscriptionIds: readonly string[]
  /** No subscription follows. */
  readonly isLast: boolean
}

/** An amount of the ledger, and what was promised of it so far. */
export type BillingBalance = {
  readonly row: Omit<UsageRow, 'methods'>
  readonly quantity: BillingQuantity
  readonly amount: number
  readonly promised: number
  /** The part of the last event; 0 when there is none. */
  readonly lastPart: number
}

export type BillingOutcome = Pick<BillingEvent, 'eventKey' | 'state' | 'doubtSince' | 'reason'>

export type BillingSummary = {
  readonly waiting: number
  readonly dead: number
  /** The hour of the oldest event that waits. */
  readonly oldestWaitingHour: number | null
  /** The oldest hour whose events are not made yet, or not all. */
  readonly oldestMarkedHour: number | null
}

/** Which dead letters to retry: named ones, or all. Those whose outcome is unknown are repeated only if `isUnknownIncluded`. */
export type BillingRetry = {
  readonly ids?: readonly string[] | undefined
  readonly isUnknownIncluded: boolean
  /** They count as sent and are not sent again. */
  readonly isMarkedSent: boolean
}

/** Who makes a change, and when. */
type BillingChange = { readonly actor: Actor; readonly nowMs: number }

type BillingLease = {
  readonly owner: string
  readonly nowMs: number
  readonly untilMs: number
  /** The lease of another process, which is taken whatever time it has, if it is still this one. */
  readonly seen?: Pick<BillingState, 'owner' | 'leaseUntil'> | undefined
}

/** What the billing events of a store need; the same on both engines. Every write is durable when it resolves. */
export interface BillingStore {
  state(sink: string): Promise<BillingState | undefined>
  /** Begins with the given state where there is none. */
  begin(state: BillingState): Promise<BillingState>
  /** Takes or renews the right to send. Undefined while another process has it. */
  lease(sink: string, lease: BillingLease): Promise<BillingState | undefined>
  /** Gives the right back. */
  release(sink: string, owner: string): Promise<void>

  /** The first hour from `fromHour` to `toHour` that has usage. */
  nextHour(fromHour: number, toHour: number): Promise<number | undefined>
  /** The last of them. */
  lastHour(fromHour: number, toHour: number): Promise<number | undefined>
  page(hour: number, after: string, subscriptionsMax: number): Promise<LedgerPage>
  /** Compares the page with what was promised, writes the events that `decide` returns, and returns their number. */
  plan(
    sink: string,
    page: LedgerPage,
    decide: (balance: BillingBalance) => NewBillingEvent | undefined,
  ): Promise<number>
  /** Marks a closed hour as one whose events are to be made. From now on usage that is added to it, or to an earlier hour, marks its hour. */
  openHour(sink: string, hour: number): Promise<void>
  markedHour(sink: string): Promise<{ hour: number; marks: number } | undefined>
  /** Removes the mark unless usage was added since it was read. */
  unmarkHour(sink: string, marked: { hour: number; marks: number }): Promise<void>

  /** Events that wait, oldest hours first. */
  waiting(sink: string, eventsMax: number): Promise<BillingEvent[]>
  /** Records attempts and their outcomes. Events that do not wait any more stay as they are; throws when the right to send was lost. */
  put(sink: string, owner: string, outcomes: readonly BillingOutcome[]): Promise<void>

  summary(sink: string): Promise<BillingSummary>
  dead(sink: string, eventsMax: number): Promise<BillingEvent[]>

  /** Changes of the operator, each with its audit line. */
  setPaused(context: BillingChange, sink: string, paused: boolean): Promise<void>
  retry(context: BillingChange, sink: string, which: BillingRetry): Promise<{ changed: number; unknown: number }>
  /** Raises the revision of the customer; fails with `revision-changed` where it is not the expected one. */
  setBillingId(
    context: BillingChange & { readonly ifRevision?: number | undefined },
    customerId: string,
    billingId: string | null,
  ): Promise<void>
  billingIds(customerIds: readonly string[]): Promise<ReadonlyMap<string, string>>
}
