import { setBounded } from '../../core/bounded-map.ts'

/** Readings of one account in REREAD_MS for states that were not looked for yet. A nonce changes once in a slot, of 50 ms or more, and is looked for twice. */
export const REREADS_MAX = 40
const REREAD_MS = 1000
/** Accounts; the oldest are removed first. */
const ACCOUNTS_MAX = 16_384

/** Limits how often an account is read again although its last reading is recent. */
export type Rereads = {
  /** Whether to read the account for this state: once in REREAD_MS, and for at most REREADS_MAX states. */
  take(address: string, state: string): boolean
}

export function createRereads(nowMs: () => number): Rereads {
  /** In the order of their first reading. */
  const accounts = new Map<string, { readonly sinceMs: number; readonly states: Set<string> }>()

  function statesOf(address: string): Set<string> {
    const known = accounts.get(address)
    if (known !== undefined && nowMs() - known.sinceMs < REREAD_MS) return known.states
    const states = new Set<string>()
    accounts.delete(address)
    setBounded(accounts, address, { sinceMs: nowMs(), states }, ACCOUNTS_MAX)
    return states
  }

  return {
    take(address, state) {
      const states = statesOf(address)
      if (states.has(state) || states.size >= REREADS_MAX) return false
      states.add(state)
      return true
    },
  }
}
