import { setBounded } from '../../core/bounded-map.ts'
import type { Clock } from '../../core/clock.ts'
import type { Account, AccountAt, ReadAccount } from './account-lookups.ts'
import { type Awaitable, mapAwaitable } from './awaitable.ts'
import { BEHIND_SLOTS_MAX } from './freshness.ts'
import { createRereads } from './rereads.ts'

/**
 * Checks the state of accounts. An account that no node reports in time passes: availability comes first. So does one with a fault that only a node far
 * behind the others reports: it may be newly funded or created.
 */
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

export type AccountChecksDeps = {
  readonly read: ReadAccount
  readonly clock: Clock
  /** The newest slot of any node. */
  readonly bestSlot: () => number
}

export function createAccountChecks({ read, clock, bestSlot }: AccountChecksDeps): AccountChecks {
  const cache = createAccountCache()
  const rereads = createRereads(() => clock.monotonicMs())

  async function readAndCache(address: string): Promise<Account | undefined> {
    const found = await read(address)
    const { account, isUnknown } = cache.set(address, found, clock.monotonicMs(), bestSlot())
    return isUnknown ? undefined : account
  }

  return {
    check(address, faultOf, state) {
      const reading = cache.get(address)
      if (reading !== undefined) {
        const { account, readMs, triedMs, isUnknown } = reading
        const nowMs = clock.monotonicMs()
        const fault = account === undefined ? undefined : faultOf(account)
        if (account !== undefined && fault === undefined && nowMs - readMs < GOOD_MS) {
          if (nowMs - triedMs >= RENEW_MS) void readAndCache(address)
          return undefined
        }
        const isRecent = nowMs - triedMs < BAD_MS
        if (isRecent && isUnknown) return undefined
        if (isRecent && (state === undefined || !rereads.take(address, state))) return fault
      } else if (state !== undefined) rereads.take(address, state)
      return mapAwaitable(readAndCache(address), (account) => (account === undefined ? undefined : faultOf(account)))
    },
  }
}

/** What is known of an account, from the reading at `readMs`, and the last attempt to read it; `account` is undefined when no reading has succeeded. */
export type Reading = {
  readonly account: Account | undefined
  readonly slot: number
  readonly readMs: number
  readonly triedMs: number
  /** The last attempt failed, or `slot` was more than BEHIND_SLOTS_MAX behind the newest one: a fault of the account does not count. */
  readonly isUnknown: boolean
}

/** The last readings of accounts; the least recently used are removed first. */
export type AccountCache = {
  get(address: string): Reading | undefined
  /**
   * Returns what is known now. `found` is undefined for a reading that failed: what was known stays. It also stays, for GOOD_MS, when the reading is of
   * an older slot, from a node that is behind.
   */
  set(address: string, found: AccountAt | undefined, nowMs: number, bestSlot: number): Reading
}

/** For existing and for missing accounts separately: invented addresses, which cost nothing, displace only each other. */
const CACHED_MAX = 16_384
const NEVER_READ: Reading = { account: undefined, slot: 0, readMs: 0, triedMs: 0, isUnknown: true }

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
    set(address, found, nowMs, bestSlot) {
      const before = existing.get(address) ?? missing.get(address) ?? NEVER_READ
      existing.delete(address)
      missing.delete(address)
      const isOlder = found !== undefined && found.slot < before.slot && nowMs - before.readMs < GOOD_MS
      const known = found === undefined || isOlder ? before : { ...found, readMs: nowMs }
      const isUnknown = found === undefined || bestSlot - known.slot > BEHIND_SLOTS_MAX
      const reading: Reading = { ...known, triedMs: nowMs, isUnknown }
      setBounded(reading.account ? existing : missing, address, reading, CACHED_MAX)
      return reading
    },
  }
}
