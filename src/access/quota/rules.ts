import type { Calendar } from './calendar.ts'
import type { QuotaMemory } from './memory.ts'
import { ACCOUNT, BUCKET } from './memory-layout.ts'

/** The rules of one quota account in memory; account and bucket are given by their cells. The caller holds the account's lock. */

/** What a bucket may hold: while the shared ledger is unreachable, this process's share of it, but never less than the most expensive call. */
export function capacityOf(memory: QuotaMemory, account: number, bucket: number): number {
  const capacity = memory.float(bucket, BUCKET.capacity)
  const share = memory.float(account, ACCOUNT.share)
  return share === 1
    ? capacity
    : Math.min(capacity, Math.max(capacity * share, memory.float(bucket, BUCKET.largestDraw)))
}

export function refill(memory: QuotaMemory, account: number, bucket: number, nowMs: number): void {
  const elapsedMs = nowMs - memory.float(bucket, BUCKET.atMs)
  if (elapsedMs <= 0) return
  memory.setFloat(bucket, BUCKET.atMs, nowMs)
  const added = elapsedMs * memory.float(bucket, BUCKET.partsPerMs) * memory.float(account, ACCOUNT.share)
  const level = memory.float(bucket, BUCKET.level) + added
  memory.setFloat(bucket, BUCKET.level, Math.min(capacityOf(memory, account, bucket), level))
}

export function refillAll(memory: QuotaMemory, account: number, nowMs: number): void {
  for (const bucket of memory.bucketsOf(account)) refill(memory, account, bucket, nowMs)
}

/** A later month starts at 0. An earlier one, after a grossly wrong clock, keeps the units spent; by one it may be that another thread is ahead. */
export function rollMonth(memory: QuotaMemory, account: number, { month }: Calendar): void {
  const before = memory.float(account, ACCOUNT.month)
  if (month === before || month === before - 1) return
  memory.setFloat(account, ACCOUNT.month, month)
  if (month < before) return
  memory.setFloat(account, ACCOUNT.used, 0)
  // Unbooked units of the old month are dropped.
  memory.setFloat(account, ACCOUNT.spent, 0)
  memory.setFloat(account, ACCOUNT.booked, 0)
  setCeiling(memory, account)
}

/** How far the units of the month may go: while the shared ledger is unreachable, by this process's share of what was left. */
export function setCeiling(memory: QuotaMemory, account: number): void {
  const used = memory.float(account, ACCOUNT.used)
  const share = memory.float(account, ACCOUNT.share)
  const unitsPerMonth = memory.float(account, ACCOUNT.unitsPerMonth)
  const ceiling = share === 1 ? unitsPerMonth : used + Math.max(0, unitsPerMonth - used) * share
  memory.setFloat(account, ACCOUNT.monthCeiling, ceiling)
}

export function hasUnbooked(memory: QuotaMemory, account: number): boolean {
  if (memory.float(account, ACCOUNT.spent) !== memory.float(account, ACCOUNT.booked)) return true
  for (const bucket of memory.bucketsOf(account)) if (unbooked(memory, bucket) !== 0) return true
  return false
}

/** Parts of a bucket that are spent and not booked. */
export function unbooked(memory: QuotaMemory, bucket: number): number {
  return memory.float(bucket, BUCKET.spent) - memory.float(bucket, BUCKET.booked)
}

/** Whether the account carries no information: everything is booked and all buckets are full. */
export function isIdle(memory: QuotaMemory, account: number, nowMs: number): boolean {
  for (const bucket of memory.bucketsOf(account)) {
    refill(memory, account, bucket, nowMs)
    if (memory.float(bucket, BUCKET.level) < capacityOf(memory, account, bucket)) return false
  }
  return true
}
