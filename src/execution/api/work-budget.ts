import type { Clock } from '../../core/clock.ts'
import { createKeyedBuckets, type Taken } from '../../core/keyed-buckets.ts'
import { peerKey } from '../../platform/net/connection-caps.ts'

/** What the work of one request costs. One unit is one to three tenths of a millisecond of the event loop. */
export const PRICE = {
  /** Every request, handshake, message and JSON-RPC call. */
  call: 1,
  /** Each block whose logs are examined. */
  logBlock: 1,
  /** Each scrape of /metrics. */
  scrape: 25,
} as const

/** Work that costs one unit: bytes made, bytes that were ready, logs or raw events examined, values of a filter. */
export const UNIT = { bytes: 4 * 1024, readyBytes: 32 * 1024, items: 256, filterValues: 4 } as const

/** Whose budget pays: that of a subscription, where the request carries a token, else that of a client address. */
export type WorkOwner = string

export type WorkBudget = {
  readonly unitsPerSecond: number
  /** Takes the price of work before it begins, or returns how long to wait. */
  take(owner: WorkOwner, units: number): Taken
  /** Charges work that is done. An owner in debt waits longer for its next `take`. */
  charge(owner: WorkOwner, units: number): void
}

export type WorkBudgetOptions = { readonly unitsPerSecond: number; readonly burstUnits: number }

export function createWorkBudget({ unitsPerSecond, burstUnits }: WorkBudgetOptions, clock: Clock): WorkBudget {
  const buckets = createKeyedBuckets({ perSecond: unitsPerSecond, burst: burstUnits }, clock.monotonicMs)
  return { unitsPerSecond, take: buckets.take, charge: buckets.charge }
}

export function ownerOf(address: string, subscriptionId: string | undefined): WorkOwner {
  return subscriptionId === undefined ? `address ${peerKey(address)}` : `subscription ${subscriptionId}`
}

/** The budget of one owner. */
export type WorkMeter = {
  readonly unitsPerSecond: number
  take(units: number): Taken
  charge(units: number): void
}

export function meterOf(budget: WorkBudget, owner: WorkOwner): WorkMeter {
  const { unitsPerSecond } = budget
  return { unitsPerSecond, take: (units) => budget.take(owner, units), charge: (units) => budget.charge(owner, units) }
}

/** Units of so many bytes of a response. */
export function unitsOfBytes(bytes: number): number {
  return Math.ceil(bytes / UNIT.bytes)
}
