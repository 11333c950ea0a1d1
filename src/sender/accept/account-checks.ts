import { setBounded } from '../../core/bounded-map.ts'
import type { Clock } from '../../core/clock.ts'
import type { Account, ReadAccount } from './account-lookups.ts'
import { type Awaitable, mapAwaitable } from './awaitable.ts'
import { createRereads } from './rereads.ts'

/** Checks the state of accounts. An account that no node reports in time passes: availability comes first. */
export type AccountChecks = {
  /**
   * The fault that `faultOf` finds in the account, from the cache where the last reading is recent enough. `state` names the state that the account is
   * expected to be in, where it changes often: a reading that was not made for it may only be outdated, and the account is read again.
   */
  check<Fault>(
    address: string,
    faultOf: (account: Account) => Fault | undefined,
    state?: string,
  ): Awaitable<Fault | undefined>
}

/** How long a good reading is used. */
const GOOD_MS = 30_000
/** From this age on a good reading is renewed in the background when it is used. */
const RENEW_MS = 2000
/** How long a bad or failed reading is used: short, so that a newly funded payer passes soon. */
const BAD_MS = 1000

export function createAccountChecks(read: ReadAccount, clock: Clock): AccountChecks {
  const cache = createAccountCache()
  const rereads = createRereads(() => clock.monotonicMs())

  async function readAndCache(address: string): Promise<Account | undefined> {
    const account = await read(address)
    cache.set(address, account, clock.monotonicMs())
    return account
  }

  return {
    check(address, faultOf, state) {
      const reading = cache.get(address)
      if (reading !== undefined) {
        const { account, readMs, triedMs } = reading
        const nowMs = clock.monotonicMs()
        const fault = account === undefined ? undefined : faultOf(account)
        if (account !== undefined && fault === undefined && nowMs - readMs < GOOD_MS) {
          if (nowMs - triedMs >= RENEW_MS) void readAndCache(address)
          return undefined
        }
        const isRecent = nowMs - triedMs < BAD_MS
        // After a failed reading the state of the account is unknown, and unknown passes.
        if (isRecent && readMs !== triedMs) return undefined
        if (isRecent && (state === undefined || !rereads.take(address, state))) return fault
      } else if (state !== undefined) rereads.take(address, state)
      return mapAwaitable(readAndCache(address), (account) => (account === undefined ? undefined : faultOf(account)))
    },
  }
}

/** The last successful reading and the time of the last attempt; `account` is undefined when no reading has succeeded. */
export type Reading = { readonly account: Account | undefined; readonly readMs: number; readonly triedMs: number }

/** The last readings of accounts; the least recently used are removed first. */
export type AccountCache = {
  get(address: string): Reading | undefined
  /** `account` is undefined for a reading that failed: the previous one stays. */
  set(address: string, account: Account | undefined, nowMs: number): void
}

/** For existing and for missing accounts separately: invented addresses, which cost nothing, displace only each other. */
const CACHED_MAX = 16_384

export function createAccountCache(): AccountCache {
  /** In the order of last use. */
  const existing = new Map<string, Reading>()
  const missing = new Map<string, Reading>()
  return {
    get(address) {
      const found = existing.get(address)
      if (found === undefined) return missing.get(address)
      existing.delete(address)
      existing.set(address, found)
      return found
    },
    set(address, account, nowMs) {
      const before = existing.get(address) ?? missing.get(address)
      existing.delete(address)
      missing.delete(address)
      const reading: Reading =
        account === undefined
          ? { account: before?.account, readMs: before?.readMs ?? 0, triedMs: nowMs }
          : { account, readMs: nowMs, triedMs: nowMs }
      const readings = reading.account ? existing : missing
      setBounded(readings, address, reading, CACHED_MAX)
    },
  }
}
