import { createBillingCustomers } from './customers.ts'
import { createDeadLetters } from './dead-letters.ts'
import type { BillingTablesDeps } from './deps.ts'
import { createBillingEvents } from './events.ts'
import { createBillingHours } from './hours.ts'
import { createSinkStates } from './sink-state.ts'
import type { BillingStore } from './store.ts'

/** The billing events of a store: which process sends them, the hours that need some, the events, and those that were not accepted. */
export function createBillingRows(deps: BillingTablesDeps): BillingStore {
  return {
    ...createSinkStates(deps),
    ...createBillingHours(deps),
    ...createBillingEvents(deps),
    ...createDeadLetters(deps),
    ...createBillingCustomers(deps),
  }
}
