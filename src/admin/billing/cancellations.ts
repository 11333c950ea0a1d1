import type { AuditLine } from '../../access/audit/line.ts'
import type { Subscription } from '../../access/store/model.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { ServiceError } from '../../core/error.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'

/** The changes that cancel subscriptions. */
const ACTIONS = ['sub.cancel', 'customer.remove']
/** Lines that are in memory at the same time. */
const PAGE_LINES = 1000
/** Subscriptions cancelled since the time that is asked for: about 100 bytes each. */
const CANCELLATIONS_MAX = 200_000

export type Cancellations = {
  /** When a cancelled subscription was cancelled, unix ms; before the time that was asked for: minus infinity. */
  atMsOf(subscription: Pick<Subscription, 'id' | 'revision'>): number
}

/**
 * When subscriptions were cancelled. Their records do not have it; the audit log has. The log is read once for all of them, and all of it: the
 * clocks of several machines may differ, so the times of its lines need not be in order.
 */
export async function readCancellations(
  store: Pick<AccessStore, 'auditPage' | 'revision'>,
  sinceMs: number,
  cancellationsMax = CANCELLATIONS_MAX,
): Promise<Cancellations> {
  const slices = createTimeSlices()
  const revision = await store.revision()
  const found = new Map<string, number>()
  let before: number | undefined
  do {
    const page = await store.auditPage({ actions: ACTIONS, limit: PAGE_LINES, before })
    for (const text of page.lines) {
      const { time, subjects } = JSON.parse(text) as AuditLine
      const atMs = Date.parse(time)
      if (atMs >= sinceMs) for (const id of subjects) if (!found.has(id)) found.set(id, atMs)
      if (slices.isSpent()) await slices.yield()
    }
    if (found.size > cancellationsMax)
      throw new ServiceError(
        'invalid-value',
        `more than ${cancellationsMax} subscriptions were cancelled since the beginning of the month (limit: invoiceCancellations)`,
        { fix: 'Choose a later month.' },
      )
    before = page.next ?? undefined
  } while (before !== undefined)
  return {
    atMsOf: ({ id, revision: changed }) => {
      // Cancelled while the log was read, or after it.
      if (changed > revision) return Number.POSITIVE_INFINITY
      return found.get(id) ?? Number.NEGATIVE_INFINITY
    },
  }
}
