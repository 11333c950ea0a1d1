import type { Calendar } from './calendar.ts'
import type { QuotaMemory } from './memory.ts'
import { ACCOUNT, BUCKET, FIELD, FLAG } from './memory-layout.ts'
import type { Booked, Booking } from './redis-script.ts'
import { capacityOf, refillAll, rollMonth, setCeiling, unbooked } from './rules.ts'

/** A booking in flight: what it books, and for each bucket its cell and the units that are waived when it succeeds. */
export type SentBooking = {
  readonly booking: Booking
  readonly generation: number
  readonly buckets: readonly { readonly cell: number; readonly waived: number }[]
}

type BookingContext = { readonly memory: QuotaMemory; readonly calendar: Calendar }

/**
 * The booking to send now for an account; undefined where it is closed. After a time on its local share, what the local bucket has refilled since is
 * waived. A reply for an account that was closed meanwhile is ignored.
 */
export function takeBooking({ memory, calendar }: BookingContext, account: number, monotonicMs: number) {
  calendar.update(monotonicMs)
  memory.lock(account)
  const sent = memory.isOpen(account) ? readBooking(memory, calendar, account, Math.floor(monotonicMs)) : undefined
  memory.unlock(account)
  return sent
}

function readBooking(memory: QuotaMemory, calendar: Calendar, account: number, nowMs: number): SentBooking {
  rollMonth(memory, account, calendar)
  refillAll(memory, account, nowMs)
  const flags = memory.int(account, FIELD.flags)
  const spent = memory.float(account, ACCOUNT.spent)
  const booked = memory.float(account, ACCOUNT.booked)
  const usedKnown = Math.max(0, memory.float(account, ACCOUNT.used) - (spent - booked))
  const buckets = [...memory.bucketsOf(account)].map((cell) => {
    const missing = Math.max(0, capacityOf(memory, account, cell) - memory.float(cell, BUCKET.level))
    const waived = (flags & FLAG.local) === 0 ? 0 : Math.max(0, unbooked(memory, cell) - missing)
    return { cell, waived: waived / memory.float(cell, BUCKET.partsPerUnit) }
  })
  return {
    generation: memory.int(account, FIELD.generation),
    buckets,
    booking: {
      opening: memory.float(account, ACCOUNT.opening),
      month: { spent, booked, number: memory.float(account, ACCOUNT.month), usedKnown },
      buckets: buckets.map(({ cell, waived }) => {
        const partsPerUnit = memory.float(cell, BUCKET.partsPerUnit)
        return {
          key: memory.nameOf(cell),
          perSecond: memory.float(cell, BUCKET.perSecond),
          capacity: memory.float(cell, BUCKET.capacityUnits),
          spent: memory.float(cell, BUCKET.spent) / partsPerUnit - waived,
          booked: memory.float(cell, BUCKET.booked) / partsPerUnit,
        }
      }),
    },
  }
}

/** Applies the reply to a booking; units spent since it was sent stay unbooked. */
export function applyBooked(
  { memory, calendar }: BookingContext,
  account: number,
  { booking, generation, buckets }: SentBooking,
  reply: Booked,
  monotonicMs: number,
): void {
  calendar.update(monotonicMs)
  memory.lock(account)
  if (memory.int(account, FIELD.generation) === generation) {
    rollMonth(memory, account, calendar)
    refillAll(memory, account, Math.floor(monotonicMs))
    memory.setInt(account, FIELD.flags, 0)
    memory.setFloat(account, ACCOUNT.share, 1)
    memory.setFloat(account, ACCOUNT.bookedAtMs, monotonicMs)
    const month = memory.float(account, ACCOUNT.month)
    if (booking.month.number === month) memory.setFloat(account, ACCOUNT.booked, booking.month.spent)
    // At the start of a month the clocks of server and process may differ; the local month is kept until they agree.
    if (reply.month === month) {
      const ahead = memory.float(account, ACCOUNT.spent) - memory.float(account, ACCOUNT.booked)
      memory.setFloat(account, ACCOUNT.used, Math.max(0, reply.used + ahead))
    }
    setCeiling(memory, account)
    for (const [at, { cell, waived }] of buckets.entries()) {
      const partsPerUnit = memory.float(cell, BUCKET.partsPerUnit)
      const { spent } = booking.buckets[at] as Booking['buckets'][number]
      memory.setFloat(cell, BUCKET.spent, memory.float(cell, BUCKET.spent) - waived * partsPerUnit)
      memory.setFloat(cell, BUCKET.booked, spent * partsPerUnit)
      const level = Math.round((reply.levels[at] as number) * partsPerUnit)
      memory.setFloat(cell, BUCKET.level, level - unbooked(memory, cell))
    }
  }
  memory.unlock(account)
}

/** The server is unreachable: the account continues with this process's share of the estimated level. */
export function goLocal(
  { memory, calendar }: BookingContext,
  account: number,
  share: number,
  monotonicMs: number,
): void {
  memory.lock(account)
  if (memory.isOpen(account)) {
    rollMonth(memory, account, calendar)
    refillAll(memory, account, Math.floor(monotonicMs))
    const flags = memory.int(account, FIELD.flags)
    if ((flags & FLAG.local) === 0) {
      for (const bucket of memory.bucketsOf(account)) {
        const level = memory.float(bucket, BUCKET.level)
        if (level > 0) memory.setFloat(bucket, BUCKET.level, level * share)
      }
    }
    memory.setInt(account, FIELD.flags, flags | FLAG.local)
    memory.setFloat(account, ACCOUNT.share, share)
    setCeiling(memory, account)
  }
  memory.unlock(account)
}
