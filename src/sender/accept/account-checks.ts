import type { Clock } from '../../core/clock.ts'
import type { Account, ReadAccount } from './account-lookups.ts'
import { createAccountMemory } from './account-memory.ts'
import { after, type Soon } from './soon.ts'

/** Whether an account is as a transaction needs it. An account that no node reports in time passes: availability comes first. */
export type AccountChecks = {
  /** The fault that `faultOf` finds in the account, from memory where the last reading is recent enough. */
  check<Fault>(address: string, faultOf: (account: Account) => Fault | undefined): Soon<Fault | undefined>
}

/** A good reading counts for so long. */
const GOOD_MS = 30_000
/** From this age on a good reading is renewed in the background when it is used. */
const RENEW_MS = 2000
/** A bad or failed reading counts for so long: a payer that is funded now passes soon, and costs one reading in this time until then. */
const BAD_MS = 1000

export function createAccountChecks(read: ReadAccount, clock: Clock): AccountChecks {
  const memory = createAccountMemory()

  async function readAndKeep(address: string): Promise<Account | undefined> {
    const account = await read(address)
    memory.keep(address, account, clock.monotonicMs())
    return account
  }

  return {
    check(address, faultOf) {
      const reading = memory.known(address)
      if (reading !== undefined) {
        const { account, readMs, triedMs } = reading
        const nowMs = clock.monotonicMs()
        const fault = account === undefined ? undefined : faultOf(account)
        if (account !== undefined && fault === undefined && nowMs - readMs < GOOD_MS) {
          if (nowMs - triedMs >= RENEW_MS) void readAndKeep(address)
          return undefined
        }
        // A reading that failed says nothing about the account of now.
        if (nowMs - triedMs < BAD_MS) return readMs === triedMs ? fault : undefined
      }
      return after(readAndKeep(address), (account) => (account === undefined ? undefined : faultOf(account)))
    },
  }
}
