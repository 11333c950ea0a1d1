import type { UsageInterface } from '../model.ts'
import { createTable } from '../rows.ts'
import type { AnyTable, Table } from '../tables.ts'

/** What an event for a billing system counts. */
export type BillingQuantity = 'units' | 'calls' | 'bytes'

/**
 * An amount of usage for a billing system. It is written here before it is sent, and never changes but for its state: whatever happens to the process or to
 * the connection, it is repeated with the same id and the same amount.
 */
export type BillingEvent = {
  /** `SINK/ID`. */
  readonly eventKey: string
  readonly sink: string
  /** What the sink recognizes a repetition by. */
  readonly id: string
  readonly subscriptionId: string
  /** Start of the hour, unix ms. */
  readonly hour: number
  readonly interface: UsageInterface
  readonly quantity: BillingQuantity
  /** 1, and one more for each amount that was added to the hour after the parts before it. */
  readonly part: number
  /** Negative where more calls were refunded than made. */
  readonly amount: number
  /** The customer or subscription under its name in the billing system. */
  readonly subject: string
  /** `dead`: not sent again until the operator decides. Its amount counts as promised. */
  readonly state: 'pending' | 'sent' | 'dead'
  /** The first attempt of which it is not known whether the sink counted it; null when there is none. */
  readonly doubtSince: number | null
  /** Why it is dead. */
  readonly reason: string | null
}

/** Where the events of one sink are. */
export type BillingState = {
  readonly sink: string
  /** Part of every id. In the backup, so that a restored store repeats its ids instead of inventing new ones. */
  readonly storeId: string
  /** The first hour that is sent. */
  readonly fromHour: number
  /** All hours up to this one have their events, except those with a mark in `billing_hours`. */
  readonly plannedHour: number
  readonly paused: boolean
  /** The process that sends, until `leaseUntil`. */
  readonly owner: string | null
  readonly leaseUntil: number
}

/** The name of a customer in the billing system, where that is not our id. */
export type BillingCustomer = { readonly customerId: string; readonly billingId: string }

export const BILLING_EVENT_TABLE: Table<BillingEvent> = {
  name: 'billing_events',
  fields: {
    eventKey: 'text',
    sink: 'text',
    id: 'text',
    subscriptionId: 'text',
    hour: 'integer',
    interface: 'text',
    quantity: 'text',
    part: 'integer',
    amount: 'integer',
    subject: 'text',
    state: 'text',
    doubtSince: 'integer?',
    reason: 'text?',
  },
  columns: ['eventKey', 'sink', 'state', 'hour', 'subscriptionId'],
  key: 'eventKey',
  indexes: [
    ['sink', 'state', 'hour'],
    ['sink', 'hour', 'subscriptionId'],
  ],
}

export const BILLING_STATE_TABLE: Table<BillingState> = {
  name: 'billing_state',
  fields: {
    sink: 'text',
    storeId: 'text',
    fromHour: 'integer',
    plannedHour: 'integer',
    paused: 'flag',
    owner: 'text?',
    leaseUntil: 'integer',
  },
  columns: ['sink', 'plannedHour'],
  key: 'sink',
}

export const BILLING_CUSTOMER_TABLE: Table<BillingCustomer> = {
  name: 'billing_customers',
  fields: { customerId: 'text', billingId: 'text' },
  columns: ['customerId'],
  key: 'customerId',
}

/** The tables whose rows a backup contains, each as lines of its name. The marks of `billing_hours` are made again by a restore. */
export const BILLING_TABLES = [BILLING_EVENT_TABLE, BILLING_STATE_TABLE, BILLING_CUSTOMER_TABLE] as const

export type BillingRow =
  | { readonly kind: 'billing_events'; readonly row: BillingEvent }
  | { readonly kind: 'billing_state'; readonly row: BillingState }
  | { readonly kind: 'billing_customers'; readonly row: BillingCustomer }

/** The table of this name; undefined for any other name. */
export function billingTable(name: string): Table<BillingRow['row']> | undefined {
  return BILLING_TABLES.find((table) => table.name === name) as Table<BillingRow['row']> | undefined
}

/** Statements of a released migration: they never change. The new index serves what the old one did, and the pages of an hour. */
export const CREATE_BILLING = [
  ...(BILLING_TABLES as readonly AnyTable[]).flatMap(createTable),
  'CREATE TABLE billing_hours (sink TEXT NOT NULL, hour BIGINT NOT NULL, marks BIGINT NOT NULL, PRIMARY KEY (sink, hour))',
  'CREATE INDEX usage_hours_by_hour_subscription ON usage_hours (hour, subscription_id)',
  'DROP INDEX usage_hours_by_hour',
]
