import type { UsageInterface } from '../store/model.ts'

export const USAGE_INTERFACES = ['rpc', 'ws', 'grpc', 'indexer', 'shreds'] as const satisfies UsageInterface[]

/** Whose calls are counted. */
export type UsageMeter = {
  readonly subscriptionId: string
  readonly tokenId: string
}

/** Counts calls: in the main thread where they are booked, in other threads as events for the main thread. */
export type UsageCounter = {
  createMeter(subscriptionId: string, tokenId: string): UsageMeter
  countAdmitted(meter: UsageMeter, at: UsageInterface, units: number, method?: string): void
  countRefused(meter: UsageMeter, at: UsageInterface, method?: string): void
  /** Reverts an admitted call. */
  countRefunded(meter: UsageMeter, at: UsageInterface, units: number, method?: string): void
  /** Adds payload bytes that were sent. Cheap enough for every message: no allocation, no clock, no atomic operation. */
  countBytes(meter: UsageMeter, at: UsageInterface, bytes: number): void
}
