import type { BillingEvent } from '../../access/store/billing/tables.ts'
import type { BillingSinkName } from './options.ts'
import type { BillingSink } from './sink.ts'

/** `hold`: it is neither sent nor a dead letter now. */
export type Due = 'send' | 'hold' | { readonly reason: string }

/** Unix ms of both clocks: the calendar adopts a jump of the wall clock after an hour. */
export type DueTime = { readonly calendarMs: number; readonly wallMs: number }

/**
 * What becomes of an event that waits; one that the sink would not accept, or not recognize as a repetition, is a dead letter for the reason. It is held
 * while only the wall clock says that it would not be recognized: the machine was suspended, or its clock is wrong, and the calendar knows which after
 * an hour.
 */
export function dueOf(
  { doubtSince, hour }: Pick<BillingEvent, 'doubtSince' | 'hour'>,
  { calendarMs, wallMs }: DueTime,
  { name, repeatWithinMs = Number.POSITIVE_INFINITY, ageMaxMs = Number.POSITIVE_INFINITY }: DueLimits,
): Due {
  if (doubtSince !== null && calendarMs - doubtSince > repeatWithinMs)
    return {
      reason: `outcome unknown: an attempt at ${new Date(doubtSince).toISOString()} got no response, and ${name} may count a repetition`,
    }
  if (doubtSince !== null && wallMs - doubtSince > repeatWithinMs) return 'hold'
  if (hour < Math.min(calendarMs, wallMs) - ageMaxMs)
    return { reason: `too old: ${name} does not accept usage of ${new Date(hour).toISOString()}` }
  return 'send'
}

type DueLimits = Pick<BillingSink, 'repeatWithinMs' | 'ageMaxMs'> & { readonly name: BillingSinkName }
