import { SHARING_INTS } from './permit-sharing.ts'
import { PERMIT_KINDS } from './permit-table.ts'

/**
 * The quota accounts of a process in memory that its threads share: spent quota and permits, so that all threads charge one budget.
 *
 * The memory has a header, an index, cells, and permits. Each account is a chain of cells: one for the account, one for each of its buckets. The
 * lock of an account guards all its cells; the lock of the table guards the header, the index and the chains of free cells, and is taken first.
 *
 *     header   Int32: see HEADER
 *     index    Int32 per position: cell number of an account by the hash of its id, 0 where empty; open addressing
 *     cells    CELL_BYTES each: see FIELD (Int32) and ACCOUNT, BUCKET (Float64); the name is at the end of the cell
 *     marks    two bits per cell: the account has units to book, and is to be booked as soon as possible
 *     permits  Int32 per cell, thread and kind of permit: how many the thread holds for the account of the cell
 *     totals   Int32 per thread and kind of permit
 *     sharing  permits of several processes: see `permit-sharing.ts`
 *
 * The words of quota:
 *
 *     unit     what a call costs; the limits of plans are in units
 *     part     a fraction of a unit, `partsPerUnit` of them: levels are whole parts, so that rounding errors do not add up
 *     draw     the amount that one call takes from one bucket
 *     chunk    the units that a process may spend of a shared quota before they are booked
 *     booked   known to the shared ledger; `spent` less `booked` is still to be sent
 *     share    the fraction of rate and capacity that this process uses while the shared ledger is unreachable, else 1
 *     closed   only the units of the month and permits are kept, in the cell of the account
 *     opening  the number of one time that an account is open; the shared ledger counts the bookings of each from zero
 */
export const CELL_BYTES = 192
export const CELL_INTS = CELL_BYTES / 4
export const CELL_FLOATS = CELL_BYTES / 8
/** An account with the buckets of an ordinary plan. */
const CELLS_PER_ACCOUNT = 4
/** Room for the buckets of accounts with a limit for each of 256 methods, whatever the number of accounts. */
const CELLS_MIN = 32_768

export const HEADER = {
  lock: 0,
  nextCell: 1,
  firstFree: 2,
  openAccounts: 3,
  hand: 4,
  accountsMax: 5,
  threads: 6,
  isLocal: 7,
}
export const HEADER_INTS = 16
/** Float64 fields of the header: the share of rate and capacity that accounts are opened with, and how many were opened. */
export const SHARE = 6
export const OPENED = 7

/** Int32 fields of a cell. */
export const FIELD = {
  /** Owner of the account's lock. */
  lock: 0,
  kind: 1,
  /** Changes when the account is opened or closed. */
  generation: 2,
  /** The next bucket of the account, or the next free cell. */
  next: 3,
  nameBytes: 4,
  /** The same field: of an account the bits of FLAG, of a bucket the version of its limits. */
  flags: 5,
  limitsVersion: 5,
} as const

/** Float64 fields of an account. What every charge reads is in the first 64 bytes of a cell, a line of the processor's cache. */
export const ACCOUNT = {
  /** Months since 1970, and the units spent in it. */
  month: 3,
  used: 4,
  /** Units of the month, Infinity where unlimited; and how many of them this process may spend. */
  unitsPerMonth: 5,
  monthCeiling: 6,
  /** Part of rate and capacity that this process may use. */
  share: 7,
  /** Units of the month spent and booked in the shared ledger since the account was opened. */
  spent: 8,
  booked: 9,
  /** When the last booking was applied. */
  bookedAtMs: 10,
  /** The version of the limits, see `QuotaContext`. */
  limitsVersion: 11,
  /** Numbers the openings of all accounts. */
  opening: 12,
} as const

/** Float64 fields of a bucket. Amounts are in parts of a unit. */
export const BUCKET = {
  atMs: 3,
  level: 4,
  capacity: 5,
  partsPerUnit: 6,
  partsPerMs: 7,
  /** The most one call takes. */
  largestDraw: 8,
  /** Spent and booked in the shared ledger since the account was opened. */
  spent: 9,
  booked: 10,
  /** As the plan states it, in units. */
  perSecond: 11,
  capacityUnits: 12,
} as const

export const NAME_AT = 13 * 8
export const NAME_BYTES_MAX = CELL_BYTES - NAME_AT

export const FLAG = {
  /** The shared ledger is unreachable, or has not replied for this account yet. */
  local: 1,
} as const

/** `closed`: an account of which only the units of the month and permits are kept. */
export const KIND = { free: 0, account: 1, closed: 2, bucket: 3 } as const

/** Marks of accounts for the thread that books. */
export const MARK = { unbooked: 0, requested: 1 } as const
export type Mark = (typeof MARK)[keyof typeof MARK]
export const MARKS = 2

export type QuotaMemoryOptions = {
  /** Accounts that are open at a time; beyond it one is closed as if it were idle. */
  readonly accountsMax: number
  readonly threads: number
}

/** Creates the memory. It is posted to the other threads as it is. */
export function createQuotaMemory({ accountsMax, threads }: QuotaMemoryOptions): SharedArrayBuffer {
  const { bytes } = layoutOf(accountsMax, threads)
  const memory = new SharedArrayBuffer(bytes)
  const header = new Int32Array(memory, 0, HEADER_INTS)
  header[HEADER.nextCell] = 1
  header[HEADER.accountsMax] = accountsMax
  header[HEADER.threads] = threads
  new Float64Array(memory, 0, HEADER_INTS / 2)[SHARE] = 1
  return memory
}

export function layoutOf(accountsMax: number, threads: number) {
  const cells = Math.max(CELLS_MIN, accountsMax * CELLS_PER_ACCOUNT + 1)
  const positions = 2 ** Math.ceil(Math.log2(cells * 2))
  const cellsAt = Math.ceil(((HEADER_INTS + positions) * 4) / CELL_BYTES) * CELL_BYTES
  const marksAt = cellsAt + cells * CELL_BYTES
  const markInts = Math.ceil(cells / 32)
  const permitsAt = marksAt + MARKS * markInts * 4
  const totalsAt = permitsAt + cells * threads * PERMIT_KINDS * 4
  const changedAt = totalsAt + threads * PERMIT_KINDS * 4
  const sharingAt = changedAt + markInts * 4
  const othersAt = sharingAt + SHARING_INTS * 4
  const publishedAt = othersAt + cells * PERMIT_KINDS * 4
  const listedAt = publishedAt + cells * PERMIT_KINDS * 4
  return {
    cells,
    positions,
    cellsAt,
    marksAt,
    markInts,
    permitsAt,
    totalsAt,
    changedAt,
    sharingAt,
    othersAt,
    publishedAt,
    listedAt,
    bytes: listedAt + cells,
  }
}
