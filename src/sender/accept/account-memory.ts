import type { Account } from './account-lookups.ts'

/** What was read last, and when a read was last tried; `account` is undefined where no read has succeeded. */
export type Reading = { readonly account: Account | undefined; readonly readMs: number; readonly triedMs: number }

/** The last readings of accounts. Those not used for longest go first. */
export type AccountMemory = {
  known(address: string): Reading | undefined
  /** Undefined for a read that failed: what was read before stays. */
  keep(address: string, account: Account | undefined, nowMs: number): void
}

/** Of accounts that exist, and of those that do not: addresses made up at no cost displace only each other. */
const KEPT_MAX = 16_384

export function createAccountMemory(): AccountMemory {
  /** In the order of last use. */
  const existing = new Map<string, Reading>()
  const missing = new Map<string, Reading>()
  return {
    known(address) {
      const found = existing.get(address)
      if (found === undefined) return missing.get(address)
      existing.delete(address)
      existing.set(address, found)
      return found
    },
    keep(address, account, nowMs) {
      const before = existing.get(address) ?? missing.get(address)
      existing.delete(address)
      missing.delete(address)
      const reading: Reading =
        account === undefined
          ? { account: before?.account, readMs: before?.readMs ?? 0, triedMs: nowMs }
          : { account, readMs: nowMs, triedMs: nowMs }
      const kept = reading.account ? existing : missing
      kept.set(address, reading)
      if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value as string)
    },
  }
}
