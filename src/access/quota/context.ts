import type { Calendar } from './calendar.ts'
import type { QuotaMemory } from './memory.ts'

/** What the quota accounts of one thread have in common. */
export type QuotaContext = {
  readonly memory: QuotaMemory
  readonly calendar: Calendar
  /** The version of the limits that this thread knows; it grows with each change. A thread that does not know the newest yet leaves them as they are. */
  limitsVersion(): number
  /** Whether other processes spend the same quota: then every charge is booked in the shared ledger. */
  readonly isShared: boolean
  /** Asks the shared ledger for the bookings that are marked as requested. */
  requestBookings(): void
}
